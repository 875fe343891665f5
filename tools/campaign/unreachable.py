"""Clients whose requests never reach a control plane; each call must report that."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import trustme

from neonctl_async import NeonClient
from tests.support.server import OK, MisbehavingServer, in_sequence
from tests.support.tls import certified
from tools.campaign.callers import client_of

UNREACHABLE = (
    "connection refused",
    "connection never accepted",
    "no such host",
    "TLS to a plain server",
    "certificate not trusted",
)
"""The reasons why a request does not arrive."""


@asynccontextmanager
async def unreachable_clients(key: str) -> AsyncGenerator[dict[str, NeonClient]]:
    """Provide the clients by the reason why their requests do not arrive."""
    certificate = await asyncio.to_thread(lambda: certified(trustme.CA(), "localhost"))
    async with AsyncExitStack() as stack:
        plain, untrusted = [
            await stack.enter_async_context(MisbehavingServer(in_sequence(OK), tls))
            for tls in (None, certificate)
        ]
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        queued = stack.enter_context(socket.socket())
        queued.settimeout(0)
        await asyncio.get_running_loop().sock_connect(queued, full.getsockname())
        urls = (
            "http://127.0.0.1:9",
            f"http://127.0.0.1:{full.getsockname()[1]}",
            "https://no-such-host.invalid",
            plain.base_url.replace("http:", "https:"),
            untrusted.base_url,
        )
        yield {
            name: await stack.enter_async_context(client_of(url, key))
            for name, url in zip(UNREACHABLE, urls, strict=True)
        }
