"""A local control plane that serves until it is interrupted."""

import argparse
import asyncio
import signal
import sys
from contextlib import suppress
from typing import Final, TextIO
from urllib.parse import urlsplit

import msgspec

from neonctl_local.api.databases import DEFAULT_PORT
from neonctl_local.control_plane import LocalControlPlane
from neonctl_local.postgres.servers.descriptors import raise_descriptor_limit
from neonctl_local.server.memory import return_large_blocks
from neonctl_local.server.names import is_loopback
from neonctl_local.server.serverless import WEBSOCKET_PATH
from neonctl_local.settings import Durations, PostgresSettings

_POSTGRES_PORT: Final = 5433
_KEY_NAME: Final = "restart"
"""The name of the key that every start after the first one creates and prints.

A later start cannot print an earlier key, because a data file contains only hashes of keys.
"""


async def serve(options: argparse.Namespace) -> None:
    """Serve with these options until SIGINT or SIGTERM arrives."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        # A shell starts background processes with SIGINT ignored: Ctrl-C is not for them.
        if signal.getsignal(number) is not signal.SIG_IGN:
            # Windows has no signal handlers in asyncio: there, Ctrl-C raises KeyboardInterrupt.
            with suppress(NotImplementedError):
                loop.add_signal_handler(number, stopped.set)
    control_plane = _control_plane(options)
    raise_descriptor_limit()
    return_large_blocks()
    for fault in options.fault:
        control_plane.inject(fault)
    async with control_plane:
        for failure in options.fail:
            await control_plane.fail_next(**msgspec.structs.asdict(failure))
        token = None if options.create_key else control_plane.first_start_key
        if token is None:
            token = await control_plane.create_api_key(options.create_key or _KEY_NAME)
        console = _console_link(control_plane) if options.console else None
        has_sql = options.postgres is not None
        if options.json:
            _print_json(control_plane, token, console, has_sql=has_sql)
        else:
            _print_lines(control_plane, token, console, has_sql=has_sql)
        await stopped.wait()
        planned = await control_plane.planned_failures()
    for injected in control_plane.faults:
        sys.stderr.write(f"fired {injected.fired} times: {injected.fault}\n")
    for failure in planned:
        sys.stderr.write(f"fired {failure.fired} times: {failure}\n")


def _control_plane(options: argparse.Namespace) -> LocalControlPlane:
    return LocalControlPlane(
        data=options.data,
        durable=options.durable,
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
        require_org_id=options.require_org_id,
        expose=options.expose,
        allowed_hosts=options.allow_host,
        allowed_origins=options.allow_origin,
        connections=options.connections,
        postgres=_postgres(options),
        history=options.history,
        console=options.console,
    )


def _console_link(control_plane: LocalControlPlane) -> str:
    try:
        return control_plane.console_url
    except RuntimeError as error:
        return str(error)


def _postgres_port(options: argparse.Namespace) -> int:
    # A fixed port, so that connection URIs are still valid after a restart.
    if options.postgres_port is not None:
        return int(options.postgres_port)
    if options.database_domain is not None:
        return DEFAULT_PORT
    return _POSTGRES_PORT if options.port else 0


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
        domain=options.database_domain,
        pooler=options.pooler,
    )


def _print_lines(
    control_plane: LocalControlPlane, token: str, console: str | None, *, has_sql: bool
) -> None:
    """Print the lines for a shell to standard output, and all other lines to standard error."""
    lines = [
        f"export NEON_API_HOST={control_plane.base_url}",
        f"export NEON_API_KEY={token}",
    ]
    host = urlsplit(control_plane.base_url).hostname or ""
    if not is_loopback(host):
        lines.append(f"export NEON_ALLOW_HTTP={host}")
    _write(sys.stdout, *lines)
    if console is not None:
        sys.stderr.write(f"console: {console}\n")
    if has_sql:
        sql, websocket = _addresses(control_plane)
        sys.stderr.write(f"serverless driver: fetchEndpoint {sql}, wsProxy {websocket}\n")


def _print_json(
    control_plane: LocalControlPlane, token: str, console: str | None, *, has_sql: bool
) -> None:
    """Print all addresses and the key as one line of JSON."""
    sql, websocket = _addresses(control_plane) if has_sql else (None, None)
    values = {
        "api_host": control_plane.base_url,
        "api_key": token,
        "console": console,
        "fetch_endpoint": sql,
        "ws_proxy": websocket,
    }
    _write(sys.stdout, msgspec.json.encode(values).decode())


def _addresses(control_plane: LocalControlPlane) -> tuple[str, str]:
    """Return the values for ``fetchEndpoint`` and ``wsProxy`` of Neon's serverless driver."""
    return control_plane.sql_url, f"{urlsplit(control_plane.sql_url).netloc}{WEBSOCKET_PATH}"


def _write(out: TextIO, *lines: str) -> None:
    try:
        out.write("".join(f"{line}\n" for line in lines))
        out.flush()
    except OSError as error:
        raise RuntimeError(f"standard output cannot be written: {error}") from error
