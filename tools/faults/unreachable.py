"""Clients whose requests never reach a control plane; each call must report that."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import trustme

from neonctl_async import NeonClient
from tests.support.server import MisbehavingServer, http_response
from tests.support.tls import certified
from tools.faults.callers import client_of


@asynccontextmanager
async def unreachable_clients(key: str) -> AsyncGenerator[dict[str, NeonClient]]:
    """Provide the clients by the reason why their requests do not arrive."""
    certificate = await asyncio.to_thread(_untrusted_certificate)
    async with AsyncExitStack() as stack:
        plain = await stack.enter_async_context(_server(None))
        untrusted = await stack.enter_async_context(_server(certificate))
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        queued = stack.enter_context(socket.socket())
        queued.settimeout(0)
        await asyncio.get_running_loop().sock_connect(queued, full.getsockname())
        urls = {
            "connection refused": "http://127.0.0.1:9",
            "connection never accepted": f"http://127.0.0.1:{full.getsockname()[1]}",
            "no such host": "https://no-such-host.invalid",
            "TLS to a plain server": plain.base_url.replace("http:", "https:"),
            "certificate not trusted": untrusted.base_url,
        }
        yield {
            name: await stack.enter_async_context(client_of(url, key)) for name, url in urls.items()
        }


def _server(tls: ssl.SSLContext | None) -> MisbehavingServer:
    return MisbehavingServer(lambda _request: http_response(200, {}), tls)


def _untrusted_certificate() -> ssl.SSLContext:
    return certified(trustme.CA(), "localhost")
