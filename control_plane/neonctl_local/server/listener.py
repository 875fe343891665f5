"""Stops a server from accepting connections, without losing one that is half accepted."""

import asyncio
from contextlib import suppress
from typing import Final

_ACCEPT_STEPS: Final = 3
"""The iterations of the event loop in which asyncio serves a connection that it has accepted."""


async def stop_listening(server: asyncio.Server) -> None:
    """Close the listening sockets of ``server`` once all accepted connections are served.

    Open connections stay open. ``asyncio.Server.close()`` alone leaks a connection that asyncio has
    accepted but not served yet, because nothing closes its socket.
    """
    loop = asyncio.get_running_loop()
    try:
        for listening in server.sockets:
            # On Windows, the proactor accepts connections. It has no readers.
            with suppress(NotImplementedError):
                loop.remove_reader(listening.fileno())
        for _ in range(_ACCEPT_STEPS):
            await asyncio.sleep(0)
    finally:
        server.close()
