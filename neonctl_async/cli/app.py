"""The ``neonctl-async`` command line. The modules of a command are imported on first use."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from neonctl_async._version import __version__
from neonctl_async.cli.parameters import ListingGroup, QuickGroup

PROGRAM: Final = "neonctl-async"


class Entry(NamedTuple):
    """A command or a group of commands, and the modules in ``commands`` that define it."""

    summary: str
    modules: tuple[str, ...]
    is_group: bool = True
    group: type[QuickGroup] = QuickGroup


ENTRIES: Final[Mapping[str, Entry]] = MappingProxyType(
    {
        "projects": Entry("Projects: list, read, create, change, delete, recover.", ("projects",)),
        "branches": Entry(
            "Branches: list, create, ensure, change, compare, delete, prune, recover, run.",
            (
                "branches",
                "branch_ensure",
                "branch_changes",
                "branch_schema",
                "branch_prune",
                "branch_run",
            ),
        ),
        "endpoints": Entry(
            "Computes: list, create, start, suspend, change, delete.",
            ("endpoints",),
        ),
        "databases": Entry("Databases of a branch: list, read, create, delete.", ("databases",)),
        "roles": Entry("Roles of a branch: list, create, delete; new passwords.", ("roles",)),
        "connection-string": Entry(
            "Print the connection URI of a branch.",
            ("connection_string",),
            is_group=False,
        ),
        "psql": Entry("Connect to a branch with psql.", ("psql",), is_group=False),
        "snapshots": Entry(
            "Snapshots of branches: list, create, schedule, restore, delete.", ("snapshots",)
        ),
        "operations": Entry("Operations of a project: list, read, wait, watch.", ("operations",)),
        "fleet": Entry(
            "Create the branches that a file lists; safe to repeat.",
            ("fleet",),
        ),
        "wait": Entry(
            "Wait for operations, states, connections or deletions.",
            ("wait",),
            is_group=False,
        ),
        "usage": Entry(
            "What projects and branches used, and their limits, in the units of the bill.",
            ("usage",),
            group=ListingGroup,
        ),
        "api-keys": Entry(
            "API keys: list, create, revoke.",
            ("api_keys",),
        ),
        "orgs": Entry("Organizations of the account: list, read; their members.", ("orgs",)),
        "api": Entry(
            "Call an endpoint of the API, and print its response.", ("api",), is_group=False
        ),
        "me": Entry("Show the account of a personal API key.", ("setup",), is_group=False),
        "set-context": Entry(
            "Select the project of this directory, in a .neon file.", ("setup",), is_group=False
        ),
        "local": Entry(
            "Serve a local control plane, offline, until interrupted.", ("local",), is_group=False
        ),
        "demo": Entry(
            "Create 20 branches on a local control plane, offline.",
            ("demo",),
            is_group=False,
        ),
    }
)
"""All groups and commands of the program, in the order in which its help lists them."""


def load(name: str) -> TyperGroup | TyperCommand:
    """Import the modules of a group or a command, and return the group or command."""
    entry = ENTRIES[name]
    app = typer.Typer(
        cls=entry.group,
        name=name,
        help=entry.summary,
        short_help=entry.summary,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    for module in entry.modules:
        app.add_typer(import_module(f"neonctl_async.cli.commands.{module}").app)
    group = get_group(app)
    if entry.is_group:
        return group
    command = group.commands[name]
    assert isinstance(command, TyperCommand)
    return command


class _Program(QuickGroup):
    """The program. Its help and completion use only the summaries of groups and commands."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - the parameters of TyperGroup, which have many types
        super().__init__(**attributes)
        for name, entry in ENTRIES.items():
            self.commands[name] = TyperCommand(name, short_help=entry.summary)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:  # noqa: ANN401 - Context is a class of click or of typer, by the version of typer
        if args and args[0] in ENTRIES:
            self.commands[args[0]] = load(args[0])
        return super().resolve_command(ctx, args)


app: Final = typer.Typer(
    cls=_Program,
    help="Manage Neon projects and branches, and wait until they are ready.",
    epilog="Set the API key in NEON_API_KEY. There is no option for it: other users see arguments.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


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


def run() -> int | None:
    """Run the command line. Exits with the exit code of the command."""
    app(prog_name=PROGRAM)
    return None
