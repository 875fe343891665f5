"""The options of commands that list records: ``--columns`` and ``--watch``."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Annotated, Final

import typer

from neonctl_async.cli.output import Output

LIST_OPTION: Final = "--list"
"""The option of ``api`` that lists endpoints. Its value, a path, may be left out."""
WATCH_SECONDS: Final = 5.0
"""The default interval of ``--watch``, in seconds."""

ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAMES",
        help="The columns, by name, separated by commas; by default, all that fit the terminal.",
        show_default=False,
    ),
]
WatchOption = Annotated[
    float | None,
    typer.Option(
        "--watch",
        metavar="[SECONDS]",
        min=1.0,
        help=f"Repeat the list on the terminal, by default every {WATCH_SECONDS:g} seconds.",
        show_default=False,
    ),
]


def options(*, columns: ColumnsOption = None, watch: WatchOption = None) -> None:
    """Define the options of lists."""


def with_defaults(args: Sequence[str]) -> list[str]:
    """Return the arguments, with default values added after a bare ``--watch`` or ``--list``."""
    found: list[str] = []
    for number, argument in enumerate(args):
        found.append(argument)
        following = args[number + 1] if number + 1 < len(args) else ""
        if "--" in found:
            continue
        if argument == "--watch" and not following[:1].isdecimal():
            found.append(str(WATCH_SECONDS))
        elif argument == LIST_OPTION and following[:1] in {"", "-"}:
            found.append("/")
    return found


def selected(columns: str | None, output: Output) -> list[str]:
    """Return the names in the value of ``--columns``; none if it is left out."""
    if columns is None:
        return []
    if output not in {Output.TABLE, Output.CSV}:
        raise typer.BadParameter(
            f"selects columns of a table or CSV, not of --output {output}",
            param_hint="--columns",
        )
    return [name.strip() for name in columns.split(",")]


def check_watch(output: Output) -> None:
    """Raise typer.BadParameter if the output is not a table on a terminal."""
    if output is not Output.TABLE or not sys.stdout.isatty():
        raise typer.BadParameter(
            "repeats a table on a terminal. In a script, use `operations watch --output jsonl` "
            "or `wait --for`",
            param_hint="--watch",
        )


def title(command: str, seconds: float) -> Callable[[], str]:
    """Return a function that returns the title to show above a repeated list."""

    def current() -> str:
        return f"{command}, every {seconds:g} s, {datetime.now().astimezone():%H:%M:%S}"

    return current


async def repeat(work: Callable[[], Awaitable[None]], seconds: float) -> None:
    """Repeat the work until interrupted, and pause for ``seconds`` after each run."""
    while True:
        await work()
        await asyncio.sleep(seconds)
