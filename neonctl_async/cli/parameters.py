"""Quick conversion of arguments and options.

From version 0.27 on, typer converts values with pydantic, whose import takes as long as the rest of
the command line. Here, plain values are converted without it, and errors name the value and what
was expected. All other values are left to typer.
"""

from enum import Enum
from typing import Any, Final

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

_UNKNOWN: Final = object()


class QuickCommand(TyperCommand):
    """A command that converts plain values itself."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - a class of click or of typer, by the version of typer
        """Return the parameters, set up for quick conversion."""
        return _quick(super().get_params(ctx))


class QuickGroup(TyperGroup):
    """A group that converts plain values itself."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - a class of click or of typer, by the version of typer
        """Return the parameters, set up for quick conversion."""
        return _quick(super().get_params(ctx))


class ListingGroup(QuickGroup):
    """A group that runs its ``list`` command if no command is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - a class of click or of typer, by the version of typer
        """Parse the arguments of the group, and of its ``list`` command if they name no command."""
        names_command = bool(args) and not args[0].startswith("-")
        if not names_command and args[:1] not in (["-h"], ["--help"]) and not ctx.resilient_parsing:
            args = ["list", *args]
        return super().parse_args(ctx, args)


def _quick(parameters: list[Any]) -> list[Any]:
    objects: list[object] = parameters
    for parameter in objects:
        # Older versions of typer have no such attribute. They convert without pydantic.
        attributes: dict[str, object] = vars(parameter)
        if attributes.get("_runtime_param", _UNKNOWN) is None:
            attributes["_runtime_param"] = _QuickConverter()
        if isinstance(parameter, TyperArgument):
            attributes["display_type_rich"] = _no_type
    return parameters


def _no_type(**_context: object) -> None:
    """Show no type for an argument in the help, because its name is enough."""


class _QuickConverter:
    """Takes the place of the converter that typer would build."""

    def coerce(self, value: object, param: Any, ctx: object) -> object:  # noqa: ANN401 - Parameter is a class of click or of typer, by the version of typer
        info = param.type_descriptor.parameter_info
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        converted = _UNKNOWN
        if info.parser is None and getattr(info, "click_type", None) is None:
            converted = convert(value, param.type_descriptor.annotation, info.min, info.max)
        if converted is _UNKNOWN:
            vars(param)["_runtime_param"] = None
            converted = param.get_runtime_param().coerce(value, param=param, ctx=ctx)
        return converted


def convert(value: object, kind: Any, low: float | None, high: float | None) -> object:  # noqa: ANN401 - any annotation
    """Convert a value as typer would. Return _UNKNOWN if only typer can do so.

    Raises BadParameter for a number or a word that is not allowed.
    """
    if kind in {int, float} and isinstance(value, str | int | float):
        return _number(value, kind, low, high)
    if kind == list[str]:
        return _texts(value)
    if kind in {str, bool}:
        return value if isinstance(value, kind) else _UNKNOWN
    if isinstance(kind, type) and issubclass(kind, Enum):
        return value if isinstance(value, kind) else _member(value, kind)
    return _UNKNOWN


def _texts(value: object) -> object:
    if not isinstance(value, list | tuple):
        return _UNKNOWN
    values: list[object] = [*value]
    return values if all(isinstance(each, str) for each in values) else _UNKNOWN


def _member(value: object, kind: type[Enum]) -> Enum:
    words = {str(one.value): one for one in kind}
    if str(value) not in words:
        from difflib import get_close_matches  # slow to import

        close = get_close_matches(str(value), words, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise typer.BadParameter(f"{value!r} is none of {', '.join(words)}{hint}")
    return words[str(value)]


def _number(
    value: str | float, kind: type[int] | type[float], low: float | None, high: float | None
) -> int | float:
    try:
        number = kind(value)
    except ValueError:
        pass
    else:
        if (low is None or number >= low) and (high is None or number <= high):
            return number
    what = "a whole number" if kind is int else "a number"
    if low is not None:
        what += f" from {low:g} to {high:g}" if high is not None else f" of at least {low:g}"
    elif high is not None:
        what += f" of at most {high:g}"
    raise typer.BadParameter(f"{value!r} is not allowed: expected {what}")
