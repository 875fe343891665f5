"""Options that several commands have."""

from typing import Annotated, TypeVar

import typer
from msgspec import UNSET, UnsetType

from neonctl_async.waiting.waiter import DEFAULT_TIMEOUT

WAIT_SECONDS = DEFAULT_TIMEOUT
"""How long commands wait unless told otherwise."""


T = TypeVar("T")


def or_unset(value: T | None) -> T | UnsetType:
    """What an option was given. Raises ValueError for an empty text: a variable was not set."""
    if value == "":
        raise ValueError("an option is empty: leave it out, or give it a value")
    return UNSET if value is None else value


def _seconds(seconds: float) -> float:
    if not seconds >= 0:  # NaN is refused as well
        raise typer.BadParameter(f"{seconds} is not 0 or more seconds")
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
        help="The organization; left out, the account's own.",
    ),
]
ProjectArgument = Annotated[
    str, typer.Argument(metavar="PROJECT_ID", help="The project.", show_default=False)
]
NameOption = Annotated[
    str | None,
    typer.Option("--name", help="Its name; left out, the platform gives it one."),
]
WaitOption = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Come back when all is done, or at once.")
]
TimeoutOption = Annotated[
    float,
    typer.Option("--timeout", metavar="SECONDS", callback=_seconds, help="How long to wait."),
]
LimitOption = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", min=1, help="How many at most; all if left out."),
]
SecretsOption = Annotated[
    bool, typer.Option("--show-secrets", help="Show passwords, which are hidden otherwise.")
]
