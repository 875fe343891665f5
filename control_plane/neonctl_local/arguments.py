"""The arguments of ``python -m neonctl_local``. To keep ``--help`` fast, no server is imported."""

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

import msgspec

from neonctl_local.server.faults import PRESETS, FailNext, Fault, preset
from neonctl_local.settings import BackgroundIntervals, ConnectionLimits

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

T = TypeVar("T", bound=msgspec.Struct)
AddArgument = Callable[..., argparse.Action]


class Parser(argparse.ArgumentParser):
    """A parser that fails if its help cannot be written; argparse would exit with status 0."""

    def print_help(self, file: "SupportsWrite[str] | None" = None) -> None:
        """Write the help to standard output, or to another file."""
        (file or sys.stdout).write(self.format_help())

    def error(self, message: str) -> NoReturn:
        """Exit with status 2, even if the message cannot be written. Python 3.11.2 would raise."""
        with suppress(OSError):
            sys.stderr.write(f"{self.format_usage()}{self.prog}: error: {message}\n")
        sys.exit(2)


def new_parser(prog: str) -> argparse.ArgumentParser:
    """Return the parser. ``prog`` is the name of the program in its help text."""
    parser = Parser(
        prog=prog,
        usage="%(prog)s [-h] [OPTIONS]",  # errors would print all options otherwise
        description="Serve a local control plane until interrupted. Prints lines to paste into a "
        "shell: the base URL and an API key. Prints a link to the console to standard error. The "
        "subcommands user, org, member, fault and link use a running server; export and import "
        "copy data files. Each has --help.",
        epilog="Example: %(prog)s --port 0 --data control-plane.db",
    )
    _add_address(parser.add_argument_group("address and clients").add_argument)
    _add_data(parser.add_argument_group("data").add_argument)
    _add_databases(parser.add_argument_group("real databases").add_argument)
    _add_operations(parser.add_argument_group("operations and background work").add_argument)
    _add_failures(parser.add_argument_group("failures").add_argument)
    parser.add_argument("--quiet", action="store_true", help="do not log each request")
    parser.add_argument(
        "--json", action="store_true", help="print the addresses and the key as one line of JSON"
    )
    return parser


def _add_address(add: AddArgument) -> None:
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    add(
        "--port",
        type=_port,
        default=8080,
        help="port to listen on, 0 for any free one (default: %(default)s)",
    )
    add(
        "--expose",
        nargs="?",
        const=True,
        default=False,
        metavar="NAME",
        help="allow an address that is not a loopback address; NAME is the host name or address "
        "by which clients reach the server, for the printed lines and connection URIs",
    )
    add(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a further name by which clients reach the server, with a port or for any port; may "
        "be repeated",
    )
    add(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="the origin of web pages, such as http://localhost:3000, that may send SQL; may be "
        "repeated",
    )
    add(
        "--connections",
        type=_json(ConnectionLimits),
        default=ConnectionLimits(),
        metavar="JSON",
        help='the limits of connections, e.g. {"maximum": 100, "idle": 20}',
    )
    add(
        "--require-org-id",
        action="store_true",
        help="return 400 if a personal key lists, creates or accepts projects without org_id",
    )
    add(
        "--no-console",
        dest="console",
        action="store_false",
        help="do not serve the console or print a link to it",
    )


def _add_data(add: AddArgument) -> None:
    add("--data", type=_file, metavar="FILE", help="SQLite file (default: in memory)")
    add(
        "--durable",
        action="store_true",
        help="write changes of the file and of Postgres to disk before confirming them",
    )
    add(
        "--create-key",
        metavar="NAME",
        help="create a personal key of this name and print it; by default, the first start prints "
        "the first key, and later ones create and print a key",
    )


def _add_databases(add: AddArgument) -> None:
    add(
        "--postgres",
        nargs="?",
        const=False,
        type=_path,
        metavar="DIR",
        help="give each branch a real Postgres database; DIR contains the Postgres programs "
        "(default: search for Postgres)",
    )
    add(
        "--postgres-port",
        type=_port,
        metavar="PORT",
        help="port for connections to databases, 0 for any free one (default: 5433, or 5432 with "
        "--database-domain, or any free one with --port 0)",
    )
    add("--postgres-tls", action="store_true", help="require TLS for connections to databases")
    add(
        "--database-domain",
        metavar="DOMAIN",
        help="use names in this domain, such as db.localhost, as the hosts of computes; they must "
        "resolve to this machine; requires TLS, and uses port 5432 by default",
    )
    add(
        "--no-pooler",
        dest="pooler",
        action="store_false",
        help="connect directly to hosts with -pooler, without a pool of connections",
    )
    add(
        "--history",
        action="store_true",
        help="keep the past of databases, so that branches and restores start at any point in time",
    )


def _add_operations(add: AddArgument) -> None:
    add(
        "--duration",
        type=_seconds,
        metavar="SECONDS",
        help="the minimum duration of an operation (default: 1, or 0 with --postgres)",
    )
    add(
        "--duration-of",
        type=_duration,
        action="append",
        default=[],
        metavar="ACTION=SECONDS",
        help="how long operations of one action take; may be repeated",
    )
    add(
        "--scheduling",
        type=_share,
        default=0.0,
        metavar="SHARE",
        help="share of its duration that an operation spends in scheduling, 0 to 1 (default: 0)",
    )
    add(
        "--intervals",
        type=_json(BackgroundIntervals),
        default=BackgroundIntervals(),
        metavar="JSON",
        help='when background work runs, e.g. {"suspend_after": 60}',
    )
    add(
        "--lock",
        choices=("none", "branch", "project"),
        default="project",
        help="return 423 for requests to the branch or project of a running operation "
        "(default: %(default)s)",
    )


def _add_failures(add: AddArgument) -> None:
    add("--rate-limits", action="store_true", help="enforce the rate limits of the API (429)")
    add(
        "--fault",
        type=faults_of,
        action="extend",
        default=[],
        metavar="FAULT",
        help='inject a fault, e.g. {"route": "GET /projects", "status": 503, "times": 2}, or a '
        f"preset: {', '.join(PRESETS)}",
    )
    add(
        "--fail",
        type=_json(FailNext),
        action="append",
        default=[],
        metavar="JSON",
        help='make an operation fail, e.g. {"action": "create_branch", "retry_after": 5}',
    )


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not within 0 to 65535")
    return int(text)


def _path(text: str) -> Path:
    if not text:  # Path("") is the current directory
        raise argparse.ArgumentTypeError("the path is empty")
    return Path(text)


def _file(text: str) -> Path:
    path = _path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is a directory: expected a file, or a new name")
    return path


def _duration(text: str) -> tuple[str, float]:
    action, equals, seconds = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not like create_branch=2.5")
    return action, _seconds(seconds)


def _seconds(text: str) -> float:
    return _number(text, math.inf, "a number of seconds, 0 or more")


def _share(text: str) -> float:
    return _number(text, 1, "a share from 0 to 1")


def _number(text: str, highest: float, expected: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (0 <= number <= highest and math.isfinite(number)):
        raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")
    return number


def faults_of(text: str) -> Sequence[Fault]:
    """Return the faults of a preset, or the single fault in a JSON string."""
    if text in PRESETS or not text.startswith("{"):
        try:
            return preset(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{error}, or a fault as JSON") from None
    return [_json(Fault)(text)]


def plans_of(text: str) -> Sequence[Fault | FailNext]:
    """Return the faults of a preset, or the single fault or planned failure in a JSON string."""
    try:
        is_failure = msgspec.json.decode(text, type=_WithAction).action is not None
    except msgspec.DecodeError:
        is_failure = False
    return [_json(FailNext)(text)] if is_failure else faults_of(text)


class _WithAction(msgspec.Struct):
    action: str | None = None


def _json(kind: type[T]) -> Callable[[str], T]:
    def decode(text: str) -> T:
        try:
            return msgspec.json.decode(text, type=kind)
        except msgspec.DecodeError as error:
            problem = "" if isinstance(error, msgspec.ValidationError) else "it is not JSON: "
            fields = ", ".join(kind.__struct_fields__)
            raise argparse.ArgumentTypeError(
                f"{text}: {problem}{error}; the fields are {fields}"
            ) from None

    return decode
