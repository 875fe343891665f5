"""``python -m neonctl_async.local``: serve a local control plane until interrupted."""

import argparse
import asyncio
import errno
import logging
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TextIO, TypeVar
from urllib.parse import urlsplit

import msgspec

from neonctl_async._streams import exit_with
from neonctl_async.local.engine.lifecycle import Failure
from neonctl_async.local.postgres.servers.descriptors import raise_descriptor_limit
from neonctl_async.local.server.control_plane import LocalControlPlane, is_loopback
from neonctl_async.local.server.faults import Fault
from neonctl_async.local.settings import BackgroundIntervals, Durations, PostgresSettings

_POSTGRES_PORT: Final = 5433
T = TypeVar("T")


class FailOption(Failure, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The value of ``--fail``, as the arguments of ``LocalControlPlane.fail_next``."""

    action: str
    times: int = 1


def main(
    arguments: Sequence[str] | None = None, *, prog: str = "python -m neonctl_async.local"
) -> int:
    """Run the command and return its exit status. ``prog`` is the name in its help text."""
    parser = _parser(prog)
    options = parser.parse_args(arguments)
    if not is_loopback(options.host):
        if options.expose is False:
            parser.error(
                f"--host {options.host} is not a loopback address: add --expose NAME to allow it; "
                "NAME is the host name by which clients reach the server"
            )
        sys.stderr.write(
            f"warning: serving on {options.host}: keys and passwords are sent unencrypted\n"
        )
    if options.postgres is None:
        for name in ("postgres_port", "postgres_tls", "durable"):
            if getattr(options, name):
                option = name.replace("_", "-")
                parser.error(f"--{option} is an option of real databases: add --postgres")
    logging.basicConfig(
        level=logging.WARNING if options.quiet else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    try:
        asyncio.run(_serve(options))
    except (OSError, RuntimeError, ValueError) as error:
        hint = ""
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            hint = ": choose another port with --port or --postgres-port"
        parser.exit(1, f"{parser.prog}: {error}{hint}\n")
    return 0


async def _serve(options: argparse.Namespace) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        # A shell starts background processes with SIGINT ignored: Ctrl-C is not for them.
        if signal.getsignal(number) is not signal.SIG_IGN:
            # Windows has no signal handlers in asyncio: there, Ctrl-C raises KeyboardInterrupt.
            with suppress(NotImplementedError):
                loop.add_signal_handler(number, stopped.set)
    control_plane = _control_plane(options)
    if options.postgres is not None:
        raise_descriptor_limit()
    for fault in options.fault:
        control_plane.inject(fault)
    async with control_plane:
        for failure in options.fail:
            await control_plane.fail_next(**msgspec.structs.asdict(failure))
        await _announce(control_plane, options.create_key, sys.stdout)
        await stopped.wait()
        planned = await control_plane.planned_failures()
    for injected in control_plane.faults:
        sys.stderr.write(f"fired {injected.fired} times: {injected.fault}\n")
    for failure in planned:
        sys.stderr.write(f"fired {failure.fired} times: {failure}\n")


def _control_plane(options: argparse.Namespace) -> LocalControlPlane:
    return LocalControlPlane(
        data=options.data,
        host=options.host,
        port=options.port,
        durations=Durations(
            default=_duration_of_operations(options),
            by_action=dict(options.duration_of),
            scheduling=options.scheduling,
        ),
        intervals=options.intervals,
        rate_limits=options.rate_limits,
        lock=options.lock,
        expose=options.expose,
        postgres=_postgres(options),
    )


def _postgres_port(options: argparse.Namespace) -> int:
    # A fixed port, so that connection URIs are still valid after a restart.
    if options.postgres_port is None:
        return _POSTGRES_PORT if options.port else 0
    return int(options.postgres_port)


def _duration_of_operations(options: argparse.Namespace) -> float:
    if options.duration is not None:
        return float(options.duration)
    return 1.0 if options.postgres is None else 0.0


def _postgres(options: argparse.Namespace) -> PostgresSettings | bool:
    if options.postgres is None:
        return False
    return PostgresSettings(
        binaries=options.postgres or None,
        port=_postgres_port(options),
        tls=options.postgres_tls,
        durable=options.durable,
    )


async def _announce(control_plane: LocalControlPlane, key_name: str | None, out: TextIO) -> None:
    token = control_plane.first_start_key
    if key_name is not None:
        token = await control_plane.create_api_key(key_name)
    try:
        out.write(f"export NEON_API_HOST={control_plane.base_url}\n")
        if token is not None:
            out.write(f"export NEON_API_KEY={token}\n")
        host = urlsplit(control_plane.base_url).hostname or ""
        if not is_loopback(host):
            out.write(f"export NEON_ALLOW_HTTP={host}\n")
        out.flush()
    except OSError as error:
        raise RuntimeError(f"standard output cannot be written: {error}") from error
    if token is None:
        sys.stderr.write("the first start printed the API key: --create-key NAME creates another\n")


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Serve a local control plane until interrupted. Prints lines to paste into a "
        "shell: the base URL and, at the first start, the first API key.",
        epilog="Example: %(prog)s --port 0 --data control-plane.db",
    )
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
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
        "--port",
        type=_port,
        default=8080,
        help="port to listen on, 0 for any free one (default: %(default)s)",
    )
    add("--data", type=_path, metavar="FILE", help="SQLite file (default: in memory)")
    add(
        "--create-key",
        metavar="NAME",
        help="create another personal key and print it instead of the first one",
    )
    add(
        "--duration",
        type=float,
        metavar="SECONDS",
        help="the shortest duration of an operation (default: 1, with --postgres 0)",
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
        type=float,
        default=0.0,
        metavar="SHARE",
        help="share of its duration that an operation is in scheduling, 0 to 1 (default: 0)",
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
        default="none",
        help="return 423 for requests to the branch or project of a running operation "
        "(default: %(default)s)",
    )
    add(
        "--postgres",
        nargs="?",
        const=False,
        type=_path,
        metavar="DIR",
        help="give each branch a real Postgres database; DIR has the programs of Postgres "
        "(default: search for Postgres)",
    )
    add(
        "--postgres-port",
        type=_port,
        metavar="PORT",
        help="port for connections to databases, 0 for any free one (default: 5433, with --port 0 "
        "any free one)",
    )
    add("--postgres-tls", action="store_true", help="require TLS for connections to databases")
    add(
        "--durable",
        action="store_true",
        help="let Postgres write to disk before it confirms a commit",
    )
    add("--rate-limits", action="store_true", help="enforce the rate limits of the API (429)")
    add(
        "--fault",
        type=_json(Fault),
        action="append",
        default=[],
        metavar="JSON",
        help='inject a fault, e.g. {"route": "GET /projects", "status": 503, "times": 2}',
    )
    add(
        "--fail",
        type=_json(FailOption),
        action="append",
        default=[],
        metavar="JSON",
        help='let an operation fail, e.g. {"action": "create_branch", "retry_after": 5}',
    )
    add("--quiet", action="store_true", help="do not log each request")
    return parser


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not within 0 to 65535")
    return int(text)


def _path(text: str) -> Path:
    if not text:  # Path("") is the current directory
        raise argparse.ArgumentTypeError("the path is empty")
    return Path(text)


def _duration(text: str) -> tuple[str, float]:
    action, equals, seconds = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not like create_branch=2.5")
    return action, float(seconds)


def _json(kind: type[T]) -> Callable[[str], T]:
    def decode(text: str) -> T:
        try:
            return msgspec.json.decode(text, type=kind)
        except msgspec.DecodeError as error:
            raise argparse.ArgumentTypeError(f"{text}: {error}") from None

    return decode


if __name__ == "__main__":
    exit_with(main)
