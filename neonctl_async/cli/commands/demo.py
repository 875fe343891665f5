"""``neonctl-async demo``."""

import asyncio
from typing import Annotated, Final

import typer

from neonctl_async.cli.app import PROGRAM
from neonctl_async.cli.commands.local import require_server
from neonctl_async.cli.exits import ExitCode
from neonctl_async.cli.parameters import QuickCommand

app: Final = typer.Typer()


@app.command(
    "demo",
    cls=QuickCommand,
    help="Create 20 branches in 5 projects at once, on a local control plane: offline, no key.",
    epilog=f"\b\nExample: {PROGRAM} demo --seconds 0.1",
)
def show(
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds", metavar="SECONDS", min=0.0, help="The minimum duration of each operation."
        ),
    ] = 1.0,
    *,
    postgres: Annotated[
        bool,
        typer.Option(help="Give each branch a real database, if this machine has Postgres."),
    ] = True,
) -> None:
    """Run the demonstration."""
    require_server()
    from neonctl_async.cli.demonstration import demonstrate  # imports the HTTP server
    from neonctl_async.cli.interrupts import run_interruptible

    try:
        run_interruptible(demonstrate(seconds, postgres=postgres))
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(ExitCode.INTERRUPTED) from None
