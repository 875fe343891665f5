"""``neonctl-async local``: the same command as ``python -m neonctl_local``."""

from importlib.util import find_spec
from typing import Final

import typer

from neonctl_async.cli.exits import ExitCode
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
    require_server()
    from neonctl_local.__main__ import main  # imports the HTTP server

    raise typer.Exit(main(context.args, prog=context.command_path))


def require_server() -> None:
    """Exit if the local control plane is not installed, and print the command that installs it."""
    if find_spec("neonctl_local") is None:
        typer.echo(
            "error: the local control plane is not installed: "
            "pip install 'neonctl-async[cli,local]'",
            err=True,
        )
        raise typer.Exit(ExitCode.USAGE)
