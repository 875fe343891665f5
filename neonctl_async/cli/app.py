"""The command line ``neonctl-async`` and its groups of commands."""

from typing import Annotated, Final

import typer

from neonctl_async._streams import exit_with
from neonctl_async._version import __version__
from neonctl_async.cli.command import PROGRAM
from neonctl_async.cli.commands import api_keys, branches, demo, fleet, local, operations, projects

app: Final = typer.Typer(
    help="Manage Neon projects, branches, operations and API keys. Commands wait for Neon.",
    epilog="Set the API key in NEON_API_KEY. There is no option for it: other users see arguments.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(projects.app, name="projects")
app.add_typer(branches.app, name="branches")
app.add_typer(operations.app, name="operations")
app.add_typer(fleet.app, name="fleet")
app.add_typer(api_keys.app, name="api-keys")
app.command(
    "local",
    help="Serve a local control plane, offline, until interrupted.",
    add_help_option=False,
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
    },
)(local.serve)
app.command(
    "demo",
    help="Create 20 branches in 5 projects at once, on a local control plane: offline, no key.",
    epilog=f"Example: {PROGRAM} demo --seconds 0.1",
)(demo.show)


def _show_version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Handle the options of the program itself."""


def main() -> None:
    """Run the command line and exit with its exit code."""
    exit_with(lambda: app(prog_name=PROGRAM))
