"""The options that all commands share, and the registration of commands."""

import inspect
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Annotated, Any, Concatenate, NamedTuple, ParamSpec

import typer

from neonctl_async.cli import lists, names
from neonctl_async.cli.app import PROGRAM
from neonctl_async.cli.options import check_arguments
from neonctl_async.cli.output import Output, Screen
from neonctl_async.cli.parameters import QuickCommand
from neonctl_async.cli.session import CommandSession

P = ParamSpec("P")
Work = Callable[Concatenate[CommandSession, P], Coroutine[None, None, None]]

OutputOption = Annotated[
    Output,
    typer.Option(
        "--output",
        "-o",
        help="Print a table, CSV, JSON, one line of JSON per record, YAML, or raw: only the ids, "
        "and for a new key only the key.",
    ),
]
HostOption = Annotated[
    str | None,
    typer.Option(
        "--api-host",
        metavar="URL",
        help="The base URL of the API; by default, the one in NEON_API_HOST, else Neon's.",
        show_default=False,
    ),
]


ContextFileOption = Annotated[
    str | None,
    typer.Option(
        "--context-file",
        metavar="FILE",
        is_eager=True,
        help="The file with the default project; by default, the nearest .neon file.",
        show_default=False,
    ),
]
YesOption = Annotated[
    bool,
    typer.Option("--yes", "-y", help="Skip the confirmation. Scripts are never asked."),
]
NoColorOption = Annotated[
    bool, typer.Option("--no-color", help="Print without colours, as with NO_COLOR.")
]


VerboseOption = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Print each request and its status on standard error."),
]


class CheckedCommand(QuickCommand):
    """A command that rejects empty options and arguments, and too many arguments."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - Context is a class of click or of typer, by the version of typer
        """Parse the arguments. Exit with a usage error if one is empty or superfluous."""
        args = lists.with_defaults(args)
        check_arguments(self, ctx, args)
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            # The message about a missing choice takes one line per value.
            message = " ".join(error.format_message().split())
            vars(error)["format_message"] = lambda: message
            raise


def command(
    group: typer.Typer,
    name: str,
    summary: str,
    *,
    example: str,
    asks: bool = False,
    is_list: bool = False,
) -> Callable[[Work[P]], Work[P]]:
    """Return a decorator that makes a coroutine function a command of a group.

    The command gets the shared options and passes a CommandSession to the function. The help shows
    ``summary`` instead of a docstring, because ``python -OO`` removes docstrings. A command that
    ``asks`` for confirmation takes ``--yes``. Commands named ``list``, and others with ``is_list``,
    take the list options.
    """
    path = " ".join(example.split()[:2])

    def register(work: Work[P]) -> Work[P]:
        common = [
            each for each in _Shared._fields if each not in inspect.signature(work).parameters
        ]

        def invoke(**values: Any) -> None:  # noqa: ANN401 - the parameters of each command have other types
            shared = _Shared(**{name: values.pop(name) for name in common if name in values})
            called: Callable[..., Coroutine[None, None, None]] = work
            raise typer.Exit(_run(shared, path, lambda session: called(session, **values)))

        # typer reads the options from this signature.
        invoke.__dict__["__signature__"] = _signature(
            work,
            *([_confirmed] if asks else []),
            *([lists.options] if is_list or name == "list" else []),
            _common,
        )
        group.command(
            name,
            cls=CheckedCommand,
            help=summary,
            short_help=summary.partition("\n\n")[0],
            epilog=f"\b\nExample: {PROGRAM} {example}",  # \b: the line is not folded
        )(invoke)
        return work

    return register


class _Shared(NamedTuple):
    """The values of the options that commands share."""

    output: Output
    api_host: str | None
    no_color: bool
    context_file: str | None
    verbose: bool
    columns: str | None = None
    watch: float | None = None
    yes: bool = False


def _run(
    shared: _Shared, name: str, work: Callable[[CommandSession], Coroutine[None, None, None]]
) -> int:
    title = None
    if shared.watch is not None:
        lists.check_watch(shared.output)
        title = lists.title(name, shared.watch)
    columns = lists.selected(shared.columns, shared.output)
    screen = Screen(shared.output, no_color=shared.no_color, columns=columns, title=title)

    def start(session: CommandSession) -> Coroutine[None, None, None]:
        session.context_file = shared.context_file
        session.yes = shared.yes
        once = partial(names.with_names, session, lambda: work(session))
        return once() if shared.watch is None else lists.repeat(once, shared.watch)

    from neonctl_async.cli.running import run  # imports the HTTP client

    return run(screen, shared.api_host, start, verbose=shared.verbose)


def _common(
    *,
    output: OutputOption = Output.TABLE,
    api_host: HostOption = None,
    no_color: NoColorOption = False,
    context_file: ContextFileOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Define the options of every command."""


def _confirmed(*, yes: YesOption = False) -> None:
    """Define the option of the commands that ask for confirmation."""


def _signature(*functions: Callable[..., object]) -> inspect.Signature:
    """Return the parameters of all functions, without the first function's session."""
    _session, *parameters = (
        parameter
        for function in functions
        for parameter in inspect.signature(function).parameters.values()
    )
    return inspect.Signature(parameters)
