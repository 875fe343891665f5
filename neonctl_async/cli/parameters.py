"""Quick conversion of arguments and options.

From version 0.27 on, typer converts values with pydantic, whose import takes as long as the rest of
the command line. Here, plain values are converted without it. All other values, including invalid
ones, are left to typer.
"""

from enum import Enum
from typing import Any, Final

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
    """Return the type of an argument in the help: none, because its name is enough."""


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
    """Return a value as typer would, or _UNKNOWN if it is not as plain as expected."""
    if kind in {int, float}:
        return _number(value, kind, low, high)
    if kind == list[str]:
        return _texts(value)
    if kind in {str, bool}:
        return value if isinstance(value, kind) else _UNKNOWN
    if isinstance(kind, type) and issubclass(kind, Enum):
        if isinstance(value, kind):
            return value
        return next((one for one in kind if one.value == value), _UNKNOWN)
    return _UNKNOWN


def _texts(value: object) -> object:
    if not isinstance(value, list | tuple):
        return _UNKNOWN
    values: list[object] = [*value]
    return values if all(isinstance(each, str) for each in values) else _UNKNOWN


def _number(
    value: object, kind: type[int] | type[float], low: float | None, high: float | None
) -> object:
    if not isinstance(value, str | int | float) or "_" in str(value):
        return _UNKNOWN
    try:
        number = kind(value)
    except ValueError:
        return _UNKNOWN
    inside = (low is None or number >= low) and (high is None or number <= high)
    return number if inside else _UNKNOWN
