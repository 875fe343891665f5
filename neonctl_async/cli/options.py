"""The options that commands share."""

import os
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, TypeVar

import typer
from msgspec import UNSET, UnsetType
from typer.core import TyperCommand

from neonctl_async.cli import completion, context
from neonctl_async.cli.exits import ExitCode

WAIT_SECONDS = 300.0
"""The default timeout of commands that wait, in seconds, as in the library."""

_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DURATION: Final = re.compile(rf"(\d+(?:\.\d+)?)([{''.join(_UNIT_SECONDS)}]?)", re.ASCII)


T = TypeVar("T")


def or_unset(value: T | None) -> T | UnsetType:
    """Return the value of an option, or UNSET for None."""
    return UNSET if value is None else value


def duration(text: str, *, default_unit: str = "") -> timedelta:
    """Parse a duration such as ``12h``.

    A number without a unit needs a default unit. Raises BadParameter for any other form, and for a
    duration that is 0 or too long.
    """
    found = _DURATION.fullmatch(text.strip())
    unit = (found[2] or default_unit) if found else ""
    if found is None or not unit or not float(found[1]):
        raise typer.BadParameter(
            f"{text!r} is not a duration: expected a number above 0 and a unit, such as 30m, 12h "
            "or 7d"
        )
    try:
        return timedelta(seconds=float(found[1]) * _UNIT_SECONDS[unit])
    except OverflowError:
        raise typer.BadParameter(f"{text!r} is too long: expected a smaller number") from None


def _time_after(text: str) -> datetime:
    """Return the time after a duration, or after a number of seconds, from now on."""
    lifetime = duration(text, default_unit="s")
    try:
        return datetime.now(UTC) + lifetime
    except OverflowError:
        raise typer.BadParameter(f"{text!r} is too long: the year would exceed 9999") from None


def expiry(expires_in: datetime | None, expires_at: datetime | None) -> datetime | None:
    """Return the time of ``--expires-in`` or ``--expires-at``. Raises ValueError for both."""
    if expires_in is not None and expires_at is not None:
        raise ValueError("--expires-in and --expires-at are both set: use one of them")
    return expires_in or expires_at


def standard_input() -> str:
    """Return the text on standard input, without a byte order mark.

    Return an empty text for a completion, whose standard input is the shell's terminal.
    """
    return "" if completion.VARIABLE in os.environ else sys.stdin.read().removeprefix("\ufeff")


def check_not_empty(command: TyperCommand, ctx: typer.Context, args: Sequence[str]) -> None:
    """Exit with a usage error if an option or argument is empty.

    An empty value usually comes from an unset shell variable. In a list of arguments, it is allowed
    after ``--``, for example as an argument of psql.
    """
    if ctx.resilient_parsing:  # for a completion
        return
    values, _, _ = command.make_parser(ctx).parse_args(list(args))
    before = args[: args.index("--")] if "--" in args else args
    for parameter in command.get_params(ctx):
        value = values.get(parameter.name or "")
        if value == "" or (isinstance(value, list | tuple) and "" in value and "" in before):
            name = parameter.opts[0] if parameter.opts[0].startswith("-") else parameter.metavar
            sys.stderr.write(f"error: {name} is empty: set a value, or leave it out\n")
            raise typer.Exit(ExitCode.USAGE)


def _seconds(seconds: float) -> float:
    if not seconds >= 0:  # also rejects NaN
        raise typer.BadParameter(f"{seconds} is not a number of seconds, 0 or more")
    return seconds


def parse_time(text: str) -> datetime:
    """Parse a time with a time zone. Raises BadParameter for any other text."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a time: expected a time such as 2030-01-31T18:00:00Z"
        ) from None
    if time.tzinfo is None:
        raise typer.BadParameter(f"{text!r} has no time zone: add Z for UTC, or an offset")
    return time


def _context(ctx: typer.Context) -> context.Context:
    return context.load_usable(ctx.params.get("context_file"))


def _project(ctx: typer.Context, project: str | None) -> str | None:
    return (_context(ctx).project_id or None) if project is None else project


def _org(ctx: typer.Context, org: str | None) -> str | None:
    return (_context(ctx).org_id or None) if org is None else org


ProjectOption = Annotated[
    str | None,
    typer.Option(
        "--project",
        "-p",
        envvar="NEON_PROJECT_ID",
        metavar="PROJECT",
        callback=_project,
        autocompletion=completion.projects,
        help="The id or the name of the project; by default, that of the .neon file.",
        show_default=False,
    ),
]
OrgOption = Annotated[
    str | None,
    typer.Option(
        "--org",
        envvar="NEON_ORG_ID",
        metavar="ORG_ID",
        callback=_org,
        help="The organization; by default, that of the .neon file or of the API key.",
        show_default=False,
    ),
]
ProjectArgument = Annotated[
    str,
    typer.Argument(
        metavar="PROJECT",
        autocompletion=completion.projects,
        help="The id or the name of the project.",
        show_default=False,
    ),
]
BranchArgument = Annotated[
    str,
    typer.Argument(
        metavar="BRANCH",
        autocompletion=completion.branches,
        help="The id or the name of the branch.",
        show_default=False,
    ),
]
BranchOption = Annotated[
    str | None,
    typer.Option(
        "--branch",
        "-b",
        metavar="BRANCH",
        autocompletion=completion.branches,
        help="The id or the name of the branch; that of the .neon file, else the default branch.",
        show_default=False,
    ),
]
ParentOption = Annotated[
    str | None,
    typer.Option(
        "--parent",
        metavar="BRANCH",
        autocompletion=completion.branches,
        help="The id or the name of the parent; by default, the default branch.",
    ),
]
PreserveOption = Annotated[
    str | None,
    typer.Option(
        "--preserve-under-name",
        metavar="NAME",
        help="Keep the state before the change as a new branch of this name.",
    ),
]
ExpiresInOption = Annotated[
    datetime | None,
    typer.Option(
        "--expires-in",
        metavar="DURATION",
        parser=_time_after,
        help="Neon deletes the branch after this time, e.g. 12h, 7d, or a number of seconds.",
    ),
]
ExpiresAtOption = Annotated[
    datetime | None,
    typer.Option(
        "--expires-at",
        metavar="TIME",
        parser=parse_time,
        help="Neon deletes the branch at this time, e.g. 2030-01-31T18:00:00Z.",
    ),
]
NameOption = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="The name; by default, Neon generates one."),
]
WaitOption = Annotated[
    bool,
    typer.Option(
        "--wait/--no-wait", help="Wait until all operations have finished, or return at once."
    ),
]
ConnectOption = Annotated[
    bool, typer.Option("--connect", help="Also wait until the computes accept connections.")
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="SECONDS", callback=_seconds, help="The maximum time to wait."
    ),
]
SearchOption = Annotated[
    str | None, typer.Option("--search", metavar="TEXT", help="Part of a name or an id.")
]
LimitOption = Annotated[
    int | None,
    typer.Option(
        "--limit", metavar="N", min=1, help="The maximum number of rows; by default, all."
    ),
]
SecretsOption = Annotated[
    bool, typer.Option("--show-secrets", help="Show passwords. They are hidden by default.")
]
