"""``neonctl-async local``: the same command as ``python -m neonctl_local``."""

from typing import Final

import typer

from neonctl_async.cli.parameters import QuickCommand

app: Final = typer.Typer()


@app.command(
    "local",
    cls=QuickCommand,
    help="Serve a local control plane, offline, until interrupted.",
    add_help_option=False,
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
    },
)
def serve(context: typer.Context) -> None:
    """Pass the arguments to ``python -m neonctl_local``."""
    from neonctl_local.__main__ import main  # imports the HTTP server

    raise typer.Exit(main(context.args, prog=context.command_path))
