"""What all commands have in common: their options, an example, and how they are run."""

import inspect
import sys
from collections.abc import Callable, Coroutine
from typing import Annotated, Concatenate, ParamSpec

import typer

from neonctl_async.cli.exits import ExitCode
from neonctl_async.cli.output import Output, Screen
from neonctl_async.cli.session import CommandSession, run

P = ParamSpec("P")
Work = Callable[Concatenate[CommandSession, P], Coroutine[None, None, None]]

PROGRAM = "neonctl-async"

OutputOption = Annotated[
    Output,
    typer.Option(
        "--output",
        "-o",
        help="What goes to standard output: a table, JSON, a line of JSON for each record, or "
        "ids alone.",
    ),
]
HostOption = Annotated[
    str | None,
    typer.Option(
        "--api-host",
        metavar="URL",
        help="The base address, instead of NEON_API_HOST or the platform's.",
        show_default=False,
    ),
]
YesOption = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask; off a terminal nothing is asked anyway.")
]
NoColorOption = Annotated[bool, typer.Option("--no-color", help="No colours, as with NO_COLOR.")]


def command(
    group: typer.Typer, name: str, summary: str, *, example: str, question: str | None = None
) -> Callable[[Work[P]], Work[P]]:
    """Make a coroutine function a command of a group.

    The help shows ``summary`` instead of a docstring, which ``python -OO`` would remove.
    It gets the options that all commands have, and is given a Session in their place. ``question``
    is asked before anything is done, unless ``--yes`` is given; what it names in braces are
    arguments.
    """

    def register(work: Work[P]) -> Work[P]:
        def invoke(
            output: OutputOption,
            api_host: HostOption,
            no_color: NoColorOption,
            *args: P.args,
            **kwargs: P.kwargs,
        ) -> None:
            if question is not None and not kwargs.pop("yes"):
                _confirm(question.format(**kwargs))
            screen = Screen(output, no_color=no_color)
            raise typer.Exit(run(screen, api_host, lambda session: work(session, *args, **kwargs)))

        # What typer reads the options from.
        invoke.__dict__["__signature__"] = _signature(
            work, *([] if question is None else [_asked]), _common
        )
        epilog = f"Example: {PROGRAM} {example}"
        group.command(name, help=summary, epilog=epilog)(invoke)
        return work

    return register


def _common(
    *,
    output: OutputOption = Output.TABLE,
    api_host: HostOption = None,
    no_color: NoColorOption = False,
) -> None:
    """Has the options of every command."""


def _asked(*, yes: YesOption = False) -> None:
    """Has the option of every command that asks a question."""


def _signature(*functions: Callable[..., object]) -> inspect.Signature:
    """The parameters of all functions, but for the session that the first one is given."""
    _session, *parameters = (
        parameter
        for function in functions
        for parameter in inspect.signature(function).parameters.values()
    )
    return inspect.Signature(parameters)


def _confirm(question: str) -> None:
    """Ask, if there is somebody to ask: scripts are taken at their word."""
    if not sys.stdin.isatty():
        return
    # Not typer's way, which writes a space to standard output.
    sys.stderr.write(f"{question} [y/N]: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise typer.Exit(ExitCode.INTERRUPTED)
