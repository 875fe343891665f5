"""``fault``: planned faults and failures of a running local control plane."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Final

from neonctl_local.arguments import Parser, plans_of
from neonctl_local.commands.console import CONSOLE, CommandError, Console, segment
from neonctl_local.commands.records import AllPlanned
from neonctl_local.server.faults import PRESETS, Fault

_DESCRIPTION: Final = (
    "Plan, list and clear faults of requests and failures of operations of a running local control "
    "plane, which the environment variables NEON_API_HOST and NEON_API_KEY name. NEON_API_KEY must "
    "be a personal key of the first user."
)
_PLAN_HELP: Final = (
    f"a preset ({', '.join(PRESETS)}), a fault of requests as JSON, such as "
    '{"route": "GET /projects", "status": 503, "times": 2}, or a failure of operations as JSON, '
    'such as {"action": "create_branch", "branch": "main"}'
)
_OUTPUT: Final = "Prints what is planned: an id, how often it fired, and its settings."


def main(arguments: Sequence[str], *, prog: str) -> int:
    """Run a command and return its exit status."""
    options = _new_parser(prog).parse_args(arguments[1:])
    try:
        planned = options.run(Console.from_environment(os.environ), options)
    except CommandError as error:
        sys.stderr.write(f"{prog}: {error}\n")
        return 1
    for one in planned.planned:
        sys.stdout.write(f"{one.id}\t{one.fired}\t{bytes(one.plan).decode()}\n")
    return 0


def _new_parser(prog: str) -> Parser:
    parser = Parser(prog=f"{prog} fault", description=_DESCRIPTION)
    commands = parser.add_subparsers(required=True, metavar="add|list|clear")
    for name, run, text in (
        ("add", _add, "plan faults and failures"),
        ("list", _list, "list what is planned, with the number of times that it fired"),
        ("clear", _clear, "clear a fault or failure, or all of them"),
    ):
        command = commands.add_parser(
            name, help=text, description=f"{text.capitalize()}. {_OUTPUT}"
        )
        command.set_defaults(run=run)
        if name == "add":
            command.add_argument(
                "plans", metavar="FAULT", nargs="+", type=plans_of, help=_PLAN_HELP
            )
        if name == "clear":
            command.add_argument("id", metavar="ID", nargs="?", default="", help="such as fault-1")
    return parser


def _add(console: Console, options: argparse.Namespace) -> AllPlanned:
    plans = [plan for several in options.plans for plan in several]
    body = {
        "faults": [plan for plan in plans if isinstance(plan, Fault)],
        "failures": [plan for plan in plans if not isinstance(plan, Fault)],
    }
    return console.request("POST", "/faults", AllPlanned, body, base=CONSOLE)


def _list(console: Console, options: argparse.Namespace) -> AllPlanned:
    del options  # All commands have the same parameters.
    return console.request("GET", "/faults", AllPlanned, base=CONSOLE)


def _clear(console: Console, options: argparse.Namespace) -> AllPlanned:
    query = f"?id={segment(options.id)}" if options.id else ""
    return console.request("DELETE", f"/faults{query}", AllPlanned, base=CONSOLE)
