"""Many connections at once."""

import asyncio
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from control_plane.tests.postgres.proxy.clients import never_stopped, route_to, startup
from neonctl_local.postgres.proxy.connector import Route
from neonctl_local.postgres.proxy.messages import authentication
from neonctl_local.postgres.proxy.proxy import Proxy
from tests.support.until import until

CONNECTIONS = 1000
GREETING = authentication(0)
DESCRIPTORS = 4 * CONNECTIONS + 500


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < DESCRIPTORS:
        pytest.skip(f"the test needs {DESCRIPTORS} file descriptors: the limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, DESCRIPTORS), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    length = int.from_bytes(await reader.readexactly(4))
    await reader.readexactly(length - 4)  # the startup packet
    writer.write(GREETING)
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


@pytest.mark.scale
@pytest.mark.usefixtures("many_descriptors")
async def test_a_thousand_clients_connect_at_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The proxy would check the passwords of most clients itself. This server echoes their logins.
    monkeypatch.setattr("neonctl_local.postgres.proxy.proxy.UNCHECKED", CONNECTIONS)

    async def find(_endpoint_id: str, _address: str) -> Route:
        await asyncio.sleep(0.1)
        return route_to(path)

    proxy = Proxy(find, never_stopped, host="127.0.0.1", port=0, tls=None)
    async with await asyncio.start_unix_server(echo, path):
        port = await proxy.start()
        all_open = asyncio.Event()

        async def client(number: int) -> bytes:
            user = f"user{number:04}"
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(startup(user=user, options="endpoint=ep-frost"))
            await reader.readexactly(len(GREETING))
            await all_open.wait()
            writer.write(user.encode())
            response = await reader.readexactly(8)
            writer.close()
            await writer.wait_closed()
            return response

        async with asyncio.TaskGroup() as group:
            clients = [group.create_task(client(number)) for number in range(CONNECTIONS)]
            await until(lambda: proxy.connections("ep-frost") == CONNECTIONS)
            all_open.set()
        await until(lambda: proxy.connections() == 0)
        await proxy.stop()
    expected = [f"user{number:04}".encode() for number in range(CONNECTIONS)]
    assert [task.result() for task in clients] == expected
