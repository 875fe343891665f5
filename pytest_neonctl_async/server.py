"""``python -m pytest_neonctl_async.server``: the local control plane of a test run.

The process prints its URLs, or the error that prevents its start, as one line of JSON. It stops
when its standard input is closed, for example because the process that started it exits.
"""

import argparse
import asyncio
import gc
import hmac
import os
import secrets
import shutil
import signal
import sys
import threading
from contextlib import suppress
from typing import Final

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from neonctl_local import (
    ApiError,
    ClusterError,
    Durations,
    LocalControlPlane,
    Tenant,
    raise_descriptor_limit,
)
from pytest_neonctl_async.tenant_calls import TenantCall, encode_result
from pytest_neonctl_async.tenant_records import TenantAdded

KEPT: Final = "kept"
"""The message that the process prints, as JSON, if it continues after its input is closed."""
KEPT_SECONDS: Final = 3600.0
"""How long kept databases exist after the test run, in seconds."""


class ControlServer:
    """Adds tenants to a local control plane and calls their methods, over HTTP on loopback.

    ``url`` is its base URL. Every request carries ``token`` as a bearer token.
    """

    def __init__(self, control_plane: LocalControlPlane, kept_in: str | None = None) -> None:
        self.token: str = secrets.token_urlsafe()
        self.url: str = ""
        self.is_keeping: bool = False
        """True if databases are kept after the test run."""
        self._kept_in = kept_in
        self._control_plane = control_plane
        self._tenants: list[Tenant] = []
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen on any free port."""
        app = web.Application(middlewares=[self._guard])
        app.router.add_post("/tenants", self._add_tenant)
        app.router.add_post(r"/tenants/{number:\d+}", self._call_tenant)
        app.router.add_post("/kept", self._keep)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Close every connection."""
        if self._runner is not None:
            await self._runner.cleanup()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        # aiohttp decodes invalid UTF-8 in a header to surrogates, which a plain encode() rejects.
        sent = request.headers.get("Authorization", "").encode(errors="surrogateescape")
        if not hmac.compare_digest(sent, f"Bearer {self.token}".encode()):
            return _error(401, "the control server of a test run needs its token: none matched")
        if request.host != self.url.removeprefix("http://"):  # a name that was bound to loopback
            return _error(403, f"the Host header is {request.host!r}: expected that of {self.url}")
        try:
            return await handler(request)
        except (ApiError, ValueError) as error:
            return _error(400, str(error))
        except ClusterError as error:
            return _error(500, str(error))

    async def _add_tenant(self, request: web.Request) -> web.Response:
        del request
        tenant = await self._control_plane.add_tenant()
        self._tenants.append(tenant)
        number = len(self._tenants) - 1
        return _response(TenantAdded(number, tenant.api_key, tenant.user_id, tenant.org_id))

    async def _keep(self, request: web.Request) -> web.Response:
        """Keep the databases, and return the directory for files that describe them."""
        del request
        if self._kept_in is None:
            return _error(400, "this server was started without --kept-in")
        self.is_keeping = True
        return _response(self._kept_in)

    async def _call_tenant(self, request: web.Request) -> web.Response:
        number, count = int(request.match_info["number"]), len(self._tenants)
        if number >= count:
            return _error(404, f"tenant {number} does not exist: add it first, {count} exist")
        call = msgspec.json.decode(await request.read(), type=TenantCall)
        return _response(await call.run(self._tenants[number]))


def _response(content: object, status: int = 200) -> web.Response:
    body = encode_result(content)
    return web.Response(status=status, body=body, content_type="application/json")


def _error(status: int, message: str) -> web.Response:
    return _response({"code": "", "message": message}, status)


async def serve(operation_seconds: float, postgres: str | None, kept_in: str | None = None) -> None:
    """Serve until standard input is closed, and for another hour if databases are kept.

    ``postgres`` is the directory of the Postgres programs, "" to search, or None for no databases.
    ``kept_in`` is the directory of the files that describe kept databases.
    """
    loop = asyncio.get_running_loop()
    stopped, terminated = asyncio.Event(), asyncio.Event()

    def terminate() -> None:
        terminated.set()
        stopped.set()

    with suppress(NotImplementedError):  # on Windows
        loop.add_signal_handler(signal.SIGTERM, terminate)
    # Ctrl-C reaches every process of a terminal. The fixtures of the test run still need this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    durations = Durations(default=operation_seconds)
    databases = False if postgres is None else postgres or True
    if databases:
        raise_descriptor_limit()
    async with LocalControlPlane(durations=durations, postgres=databases) as control_plane:
        control = ControlServer(control_plane, kept_in)
        await control.start()
        try:
            urls = (control_plane.base_url, control.url, control.token)
            _announce(urls)
            # A daemon thread, because after SIGTERM standard input may stay open.
            threading.Thread(target=_await_eof, args=(loop, stopped), daemon=True).start()
            await stopped.wait()
            if control.is_keeping and not terminated.is_set():
                _announce(KEPT)
                with suppress(TimeoutError):
                    await asyncio.wait_for(terminated.wait(), KEPT_SECONDS)
        finally:
            await control.stop()


def _announce(message: object) -> None:
    sys.stdout.write(msgspec.json.encode(message).decode() + "\n")
    sys.stdout.flush()


def _await_eof(loop: asyncio.AbstractEventLoop, stopped: asyncio.Event) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    with suppress(RuntimeError):  # the loop is closed already
        loop.call_soon_threadsafe(stopped.set)


def main() -> None:
    """Run the process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--operation-seconds", type=float, required=True)
    parser.add_argument("--postgres")
    parser.add_argument("--kept-in")
    options = parser.parse_args()
    try:
        asyncio.run(serve(options.operation_seconds, options.postgres, options.kept_in))
    except (OSError, RuntimeError) as error:
        _announce(str(error))
        sys.exit(1)
    finally:
        if options.kept_in is not None:
            shutil.rmtree(options.kept_in, ignore_errors=True)


if __name__ == "__main__":
    main()
    # The test run waits for the end of this process: do not search its memory for garbage first.
    gc.freeze()
