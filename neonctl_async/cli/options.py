"""The options that commands share."""

from typing import Annotated, TypeVar

import typer
from msgspec import UNSET, UnsetType

WAIT_SECONDS = 300.0
"""The default timeout of commands that wait, in seconds: that of the library."""


T = TypeVar("T")


def or_unset(value: T | None) -> T | UnsetType:
    """Return the value of an option, or UNSET for None.

    Raises ValueError for an empty text, which usually comes from an unset shell variable.
    """
    if value == "":
        raise ValueError("an option has an empty value: set a value, or leave the option out")
    return UNSET if value is None else value


def _seconds(seconds: float) -> float:
    if not seconds >= 0:  # also rejects NaN
        raise typer.BadParameter(f"{seconds} is not a number of seconds, 0 or more")
    return seconds


ProjectOption = Annotated[
    str,
    typer.Option(
        "--project", "-p", envvar="NEON_PROJECT_ID", metavar="PROJECT_ID", help="The project."
    ),
]
OrgOption = Annotated[
    str | None,
    typer.Option(
        "--org",
        envvar="NEON_ORG_ID",
        metavar="ORG_ID",
        help="The organization; that of the API key if left out.",
    ),
]
ProjectArgument = Annotated[
    str, typer.Argument(metavar="PROJECT_ID", help="The project.", show_default=False)
]
NameOption = Annotated[
    str | None,
    typer.Option("--name", help="The name; Neon generates one if left out."),
]
WaitOption = Annotated[
    bool,
    typer.Option(
        "--wait/--no-wait", help="Wait until all operations have finished, or return at once."
    ),
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="SECONDS", callback=_seconds, help="How long to wait at most."
    ),
]
LimitOption = Annotated[
    int | None,
    typer.Option(
        "--limit", metavar="N", min=1, help="The maximum number of rows; all if left out."
    ),
]
SecretsOption = Annotated[
    bool, typer.Option("--show-secrets", help="Show passwords. They are hidden by default.")
]
