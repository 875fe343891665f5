"""``python -m neonctl_async.testing.plugin.server``: the control plane of a test run.

It prints where it is, and ends when its standard input does: with the process that started it.
"""

import argparse
import asyncio
import hmac
import os
import secrets
import signal
import sys
import threading
from contextlib import suppress
from typing import Final

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from neonctl_async.local import ApiError, Durations, LocalControlPlane, Tenant
from neonctl_async.testing.plugin.commands import Command, TenantAdded


class ControlServer:
    """Adds tenants to a control plane, and carries out commands for them, over HTTP.

    ``url`` is where it listens. Requests carry ``token`` as an API key does: as a bearer.
    """

    def __init__(self, plane: LocalControlPlane) -> None:
        self.token: str = secrets.token_urlsafe()
        self.url: str = ""
        self._plane = plane
        self._tenants: list[Tenant] = []
        self._commands = msgspec.json.Decoder[Command](Command)
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen on loopback, at any free port."""
        app = web.Application(middlewares=[self._guard])
        app.router.add_post("/tenants", self._add)
        app.router.add_post(r"/tenants/{number:\d+}", self._command)
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
        given = request.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
            return _refusal(401, "this is the console of a test run")
        try:
            return await handler(request)
        except (ApiError, ValueError) as error:
            return _refusal(400, str(error))

    async def _add(self, request: web.Request) -> web.Response:
        del request
        tenant = await self._plane.add_tenant()
        self._tenants.append(tenant)
        return _answer(
            TenantAdded(
                number=len(self._tenants) - 1,
                api_key=tenant.api_key,
                user_id=tenant.user_id,
                org_id=tenant.org_id,
            )
        )

    async def _command(self, request: web.Request) -> web.Response:
        tenant = self._tenants[int(request.match_info["number"])]
        command = self._commands.decode(await request.read())
        return _answer(await command.carry_out(tenant))


def _answer(content: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(content), content_type="application/json")


def _refusal(status: int, message: str) -> web.Response:
    body = msgspec.json.encode({"code": "", "message": message})
    return web.Response(status=status, body=body, content_type="application/json")


async def serve(operation_seconds: float) -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    with suppress(NotImplementedError):
        loop.add_signal_handler(signal.SIGTERM, stopped.set)
    # Ctrl-C goes to all processes of a terminal; this one is needed until the fixtures are done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    async with LocalControlPlane(durations=Durations(default=operation_seconds)) as plane:
        console = ControlServer(plane)
        await console.start()
        try:
            where = (plane.base_url, console.url, console.token)
            sys.stdout.write(msgspec.json.encode(where).decode() + "\n")
            sys.stdout.flush()
            # A daemon: nothing waits for it where SIGTERM came first.
            waiting = threading.Thread(target=_await_end, args=(loop, stopped), daemon=True)
            waiting.start()
            await stopped.wait()
        finally:
            await console.stop()


def _await_end(loop: asyncio.AbstractEventLoop, stopped: asyncio.Event) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    with suppress(RuntimeError):  # the loop has ended already
        loop.call_soon_threadsafe(stopped.set)


if __name__ == "__main__":
    parser: Final = argparse.ArgumentParser()
    parser.add_argument("--operation-seconds", type=float, required=True)
    asyncio.run(serve(parser.parse_args().operation_seconds))
