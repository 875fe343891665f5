"""``python -m neonctl_local``: serve a local control plane until interrupted.

If the first argument is the name of a command, run that command instead.
"""

import asyncio
import errno
import logging
import shlex
import socket
import sys
from collections.abc import Sequence

from neonctl_local.arguments import new_parser
from neonctl_local.commands import COMMANDS, run
from neonctl_local.server.names import is_loopback
from neonctl_local.streams import exit_with


def main(arguments: Sequence[str] | None = None, *, prog: str = "python -m neonctl_local") -> int:
    """Run the command and return its exit status. ``prog`` is the program's name in help texts."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] in COMMANDS:
        return run(arguments, prog=prog)
    parser = new_parser(prog)
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        is_option = unknown[0].startswith("-")
        remedy = (
            f"See {prog} --help" if is_option else f"A command comes first: {', '.join(COMMANDS)}"
        )
        parser.error(f"unrecognized arguments: {shlex.join(unknown)}. {remedy}")
    from neonctl_local.serving import serve  # noqa: PLC0415 - --help is fast without it

    if options.expose is False and not is_loopback(options.host):
        parser.error(
            f"--host {options.host} is not a loopback address: add --expose NAME to allow it; "
            "NAME is the host name by which clients reach the server"
        )
    if options.postgres is None:
        for name in ("postgres_port", "postgres_tls", "database_domain", "history", "allow_origin"):
            if getattr(options, name):
                option = name.replace("_", "-")
                parser.error(f"--{option} is an option for real databases: add --postgres")
        if not options.pooler:
            parser.error("--no-pooler is an option for real databases: add --postgres")
        if options.durable and options.data is None:
            parser.error("--durable is an option for data on disk: add --data FILE or --postgres")
    logging.basicConfig(
        level=logging.WARNING if options.quiet else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    try:
        asyncio.run(serve(options))
    except (OSError, RuntimeError, ValueError) as error:
        parser.exit(1, f"{parser.prog}: {_described(error, options.host)}\n")
    return 0


def _described(error: Exception, host: str) -> str:
    """Describe why the server did not start, and what to do next."""
    if isinstance(error, socket.gaierror):
        return f"{host!r} is not an address of this machine, check --host"
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    if error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    option = "--postgres-port" if "for databases" in error.strerror else "--port"
    match error.errno:
        case errno.EADDRNOTAVAIL:
            return f"{host!r} is not an address of this machine, check --host"
        case errno.EADDRINUSE:
            step = f"stop the program that uses it, or choose another port with {option}"
        case errno.EACCES:
            step = f"choose another port with {option}"
        case _:
            return error.strerror
    return f"{error.strerror}: {step}"


if __name__ == "__main__":
    exit_with(main)
