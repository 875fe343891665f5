"""The options that commands share."""

import os
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Annotated, Any, Final, NamedTuple, TypedDict, TypeVar

import typer
from msgspec import UNSET, UnsetType
from typer.core import TyperCommand

from neonctl_async.cli import completion, context
from neonctl_async.cli.exits import ExitCode
from neonctl_async.models.endpoints import EndpointSpec, EndpointType

WAIT_SECONDS = 300.0
"""The default timeout of commands that wait, in seconds, as in the library."""

_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_PROJECT_VARIABLE: Final = "NEON_PROJECT_ID"
_TIME: Final = "2030-01-31T18:00:00Z"
_LSN: Final = re.compile(r"[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}")
_DURATION: Final = re.compile(rf"(\d+(?:\.\d+)?)([{''.join(_UNIT_SECONDS)}]?)", re.ASCII)


T = TypeVar("T")


def or_unset(value: T | None) -> T | UnsetType:
    """Return the value of an option, or UNSET for None."""
    return UNSET if value is None else value


def unless_empty(record: T) -> T | UnsetType:
    """Return a record of option values, or UNSET if no option is set."""
    return UNSET if record == type(record)() else record


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
    """Add a duration, or a number of seconds, to the current time."""
    lifetime = duration(text, default_unit="s")
    try:
        return datetime.now(UTC) + lifetime
    except OverflowError:
        raise typer.BadParameter(f"{text!r} is too long: the year would exceed 9999") from None


def _period(text: str) -> int:
    """Parse a duration, or a number of seconds. Return the seconds; 0 is allowed."""
    return 0 if text == "0" else ceil(duration(text, default_unit="s").total_seconds())


def period_text(seconds: int) -> str:
    """Format seconds as options accept them, in the largest possible unit: ``7d``, ``90m``."""
    unit = next(unit for unit in "dhms" if not seconds % _UNIT_SECONDS[unit])
    return f"{seconds // _UNIT_SECONDS[unit]}{unit}"


def _idle_time(text: str) -> int:
    """Parse a duration, or a number of seconds. Return the seconds; 0 and -1 are allowed."""
    seconds = -1 if text == "-1" else _period(text)
    if seconds > _UNIT_SECONDS["w"]:
        raise typer.BadParameter(f"{text!r} is too long: expected at most 7d")
    return seconds


def expiry(expires_in: datetime | None, expires_at: datetime | None) -> datetime | None:
    """Return the expiry that either option sets. Raises ValueError if both are set."""
    if expires_in is not None and expires_at is not None:
        raise ValueError("--expires-in and --expires-at are both set: use one of them")
    return expires_in or expires_at


def check_change(**options: object) -> None:
    """Raise ValueError, naming the options, if none of them is set."""
    if all(value is None for value in options.values()):
        *others, last = (f"--{name.replace('_', '-')}" for name in options)
        raise ValueError(f"nothing to change: set {', '.join(others)} or {last}")


def standard_input() -> str:
    """Return the text on standard input, without a byte order mark.

    Returns an empty string during a completion, because standard input is the shell's terminal.
    """
    return "" if completion.VARIABLE in os.environ else sys.stdin.read().removeprefix("\ufeff")


def check_arguments(command: TyperCommand, ctx: typer.Context, args: Sequence[str]) -> None:
    """Exit with a usage error if a value is empty or misplaced, or if there are too many values.

    An argument may be passed as an option by mistake, or an option as an argument. An empty value
    usually comes from an unset shell variable. In a list of arguments, empty values are allowed
    after ``--``, for example as arguments of psql.
    """
    if ctx.resilient_parsing:  # for a completion
        return
    parameters = command.get_params(ctx)
    options = {option for parameter in parameters for option in parameter.opts}
    before = args[: args.index("--")] if "--" in args else args
    usage = f"see {ctx.command_path} --help"
    for parameter in parameters:
        option = f"--{parameter.metavar or ''}".lower().replace("_", "-")
        given = any(arg.partition("=")[0] == option for arg in before)
        if given and option not in options and not parameter.opts[0].startswith("-"):
            remedy = f"pass {parameter.metavar} as an argument; {usage}"
            sys.stderr.write(f"error: {option} is no option of this command: {remedy}\n")
            raise typer.Exit(ExitCode.USAGE)
    values, extra, _ = command.make_parser(ctx).parse_args(list(args))
    for parameter in parameters:
        value = values.get(parameter.name or "")
        if value == "" or (isinstance(value, list | tuple) and "" in value and "" in before):
            name = parameter.opts[0] if parameter.opts[0].startswith("-") else parameter.metavar
            remedy = "set a value" if parameter.required else "set a value, or leave it out"
            sys.stderr.write(f"error: {name} is empty: {remedy}\n")
            raise typer.Exit(ExitCode.USAGE)
    if extra:
        fitting = [each for each in ("--name", "--branch", "--project") if each in options]
        remedy = f"pass it with {' or '.join(fitting)}; {usage}" if fitting else usage
        sys.stderr.write(f"error: unexpected argument {extra[0]!r}: {remedy}\n")
        raise typer.Exit(ExitCode.USAGE)


def _seconds(seconds: float) -> float:
    if not seconds >= 0:  # also rejects NaN
        raise typer.BadParameter(f"{seconds} is not a number of seconds, 0 or more")
    return seconds


def parse_time(text: str) -> datetime:
    """Parse a time with a time zone. Raises BadParameter for anything else."""
    return _parse_time(text, f"is not a time: expected a time such as {_TIME}")


def _parse_time(text: str, complaint: str) -> datetime:
    try:
        time = datetime.fromisoformat(text.upper())
    except ValueError:
        raise typer.BadParameter(f"{text!r} {complaint}") from None
    if time.tzinfo is None:
        raise typer.BadParameter(f"{text!r} has no time zone: add Z for UTC, or an offset")
    return time


class Point(NamedTuple):
    """A point in the history of a branch."""

    lsn: str | UnsetType = UNSET
    time: datetime | UnsetType = UNSET


def _parse_point(text: str) -> Point:
    if _LSN.fullmatch(text):
        return Point(lsn=text)
    expected = f"a time such as {_TIME}, or an LSN such as 0/1A2B3C4"
    return Point(time=_parse_time(text, f"is no time and no LSN: expected {expected}"))


def at_option(of: str) -> Any:  # noqa: ANN401 - the type of typer.Option()
    """Return the option for a point in a branch's history. The help calls the branch ``of``."""
    return typer.Option(
        "--at",
        metavar="TIME|LSN",
        parser=_parse_point,
        help=f"The state of {of} at a time such as 2030-01-31T18:00:00Z or at an LSN; by default, "
        "its current state.",
    )


class Size(NamedTuple):
    """The size limits of a compute, in compute units."""

    smallest: float
    largest: float


def _parse_size(text: str) -> Size:
    smallest, dash, largest = text.partition("-")
    try:
        size = Size(float(smallest), float(largest if dash else smallest))
    except ValueError:
        size = Size(0, 0)
    if not 0 < size.smallest <= size.largest:
        raise typer.BadParameter(
            f"{text!r} is not a size: expected compute units such as 2, or a range such as 0.5-3, "
            "the smallest size first"
        )
    return size


class ComputeLimits(TypedDict):
    """The settings of a compute that ``--cu`` and ``--suspend-timeout`` set."""

    autoscaling_limit_min_cu: float | UnsetType
    autoscaling_limit_max_cu: float | UnsetType
    suspend_timeout_seconds: int | UnsetType


def compute_limits(size: Size | None, suspend_timeout: int | None) -> ComputeLimits:
    """Return the settings that ``--cu`` and ``--suspend-timeout`` set."""
    return {
        "autoscaling_limit_min_cu": size.smallest if size else UNSET,
        "autoscaling_limit_max_cu": size.largest if size else UNSET,
        "suspend_timeout_seconds": or_unset(suspend_timeout),
    }


def branch_computes(
    size: Size | None, suspend_timeout: int | None, *, compute: bool
) -> list[EndpointSpec]:
    """Return the computes of a new branch. Raises ValueError for limits without a compute."""
    if compute:
        limits = compute_limits(size, suspend_timeout)
        return [EndpointSpec(type=EndpointType.READ_WRITE, **limits)]
    if size is not None or suspend_timeout is not None:
        raise ValueError("--no-compute is set: leave out --cu and --suspend-timeout")
    return []


def _context(ctx: typer.Context) -> context.Context:
    return context.load_usable(ctx.params.get("context_file"))


def _project(ctx: typer.Context, project: str | None) -> str | None:
    if project is not None:
        return project
    found = _context(ctx).project_id or None
    if found and os.environ.get(_PROJECT_VARIABLE) == "" and not ctx.resilient_parsing:
        # A script whose variable is not set must not change the project of the file.
        sys.stderr.write(
            f"error: {_PROJECT_VARIABLE} is empty: set a value, or unset it to use the project of "
            "the .neon file\n"
        )
        raise typer.Exit(ExitCode.USAGE)
    return found


def _org(ctx: typer.Context, org: str | None) -> str | None:
    return (_context(ctx).org_id or None) if org is None else org


ProjectOption = Annotated[
    str | None,
    typer.Option(
        "--project",
        "-p",
        envvar=_PROJECT_VARIABLE,
        metavar="PROJECT",
        callback=_project,
        autocompletion=completion.projects,
        help="The id or the name of the project; by default, the one in the .neon file.",
        show_default=False,
    ),
]
OrgOption = Annotated[
    str | None,
    typer.Option(
        "--org",
        envvar="NEON_ORG_ID",
        metavar="ORG",
        callback=_org,
        help="The id or the name of the organization; by default, the one in the .neon file or the "
        "one that owns the API key.",
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
        help="The id or the name of the branch; by default, the one in the .neon file, else the "
        "default branch.",
        show_default=False,
    ),
]
OfBranchOption = Annotated[
    str | None,
    typer.Option(
        "--branch",
        "-b",
        metavar="BRANCH",
        autocompletion=completion.branches,
        help="The id or the name of a branch; by default, all branches.",
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
        help="Neon deletes it after this time, e.g. 12h, 7d, or a number of seconds.",
    ),
]
ExpiresAtOption = Annotated[
    datetime | None,
    typer.Option(
        "--expires-at",
        metavar="TIME",
        parser=parse_time,
        help="Neon deletes it at this time, e.g. 2030-01-31T18:00:00Z.",
    ),
]
SizeOption = Annotated[
    Size | None,
    typer.Option(
        "--cu",
        metavar="SIZE",
        parser=_parse_size,
        help="The size in compute units: fixed, e.g. 2, or a range for autoscaling, e.g. 0.5-3.",
    ),
]
SuspendOption = Annotated[
    int | None,
    typer.Option(
        "--suspend-timeout",
        metavar="DURATION",
        parser=_idle_time,
        help="The idle time before Neon suspends the compute, e.g. 5m, or a number of seconds; 0 "
        "means Neon's default, -1 never.",
    ),
]
SchemaOnlyOption = Annotated[
    bool, typer.Option("--schema-only", help="Copy the schema of the parent, but no data.")
]
HistoryOption = Annotated[
    int | None,
    typer.Option(
        "--history-retention",
        metavar="DURATION",
        parser=_period,
        help="How long Neon keeps the history of branches, e.g. 12h, 7d, or a number of seconds.",
    ),
]
RetentionOption = Annotated[
    int | None,
    typer.Option(
        "--retention",
        metavar="DURATION",
        parser=_period,
        help="How long Neon keeps each snapshot, e.g. 7d, or a number of seconds; by default, "
        "forever.",
    ),
]
NameOption = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="The name; by default, Neon generates one."),
]
NameArgument = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", help="The name, in place of --name.", show_default=False),
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
DeletedOption = Annotated[
    bool, typer.Option("--deleted", help="Instead, list deleted ones that Neon can recover.")
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


def one_name(argument: str | None, option: str | None) -> str | None:
    """Return the name in an argument or in ``--name``. Raises ValueError if both are set."""
    if argument is not None and option is not None:
        raise ValueError(f"the name is set twice, as {argument!r} and as --name {option!r}")
    return option if argument is None else argument
