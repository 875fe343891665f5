"""Clients whose requests never arrive anywhere: each must say so."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import trustme

from neonctl_async import NeonClient
from tests.faults.calls import client_of
from tests.support.server import MisbehavingServer, http_response
from tests.support.tls import certified


@asynccontextmanager
async def strays(key: str) -> AsyncGenerator[dict[str, NeonClient]]:
    """The clients, by what is wrong with where they send."""
    certificate = await asyncio.to_thread(_nobodys_certificate)
    async with AsyncExitStack() as stack:
        plain = await stack.enter_async_context(_answering(None))
        untrusted = await stack.enter_async_context(_answering(certificate))
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        last = stack.enter_context(socket.socket())
        last.setblocking(False)
        await asyncio.get_running_loop().sock_connect(last, full.getsockname())
        urls = {
            "connection refused": "http://127.0.0.1:9",
            "connection never accepted": f"http://127.0.0.1:{full.getsockname()[1]}",
            "no such host": "https://no-such-host.invalid",
            "TLS to what speaks none": plain.base_url.replace("http:", "https:"),
            "certificate not trusted": untrusted.base_url,
        }
        yield {
            name: await stack.enter_async_context(client_of(url, key)) for name, url in urls.items()
        }


def _answering(tls: ssl.SSLContext | None) -> MisbehavingServer:
    return MisbehavingServer(lambda _request: http_response(200, {}), tls)


def _nobodys_certificate() -> ssl.SSLContext:
    return certified(trustme.CA(), "localhost")
