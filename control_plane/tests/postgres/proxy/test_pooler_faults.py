"""Pooled logins at a proxy whose servers are models: what breaks, and what stops."""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest

from control_plane.tests.postgres.proxy.clients import never_stopped
from control_plane.tests.postgres.proxy.descriptors import count_descriptors
from control_plane.tests.postgres.proxy.model import Model, message
from neonctl_local.postgres.proxy.connector import Login, Route
from neonctl_local.postgres.proxy.messages import authentication
from neonctl_local.postgres.proxy.pooler import pooler
from neonctl_local.postgres.proxy.proxy import Proxy
from neonctl_local.postgres.proxy.scram import Verifier
from tests.support.until import until

PASSWORD: Final = "secret"
LOGIN: Final = (
    authentication(0)
    + message(b"S", b"server_version\x0018.0\0")
    + message(b"K", b"12345678")
    + message(b"Z", b"I")
)
SIZE: Final = message(b"D", b"\0\1\0\0\0\x013") + message(b"C", b"SELECT 1\0") + message(b"Z", b"I")


def verifier() -> Verifier:
    salted = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), b"salt", 1)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    return Verifier(1, b"salt", hashlib.sha256(client_key).digest(), server_key)


class Computes:
    """A proxy to model servers, which fail as a test says."""

    def __init__(self, path: Path) -> None:
        self.login = LOGIN + SIZE
        """What servers send at the login. They close if it is not complete."""
        self.is_silent = False
        """True if servers do not close after an incomplete login."""
        self.finds = asyncio.Event()
        """Clear, to find no route any more."""
        self.finds.set()
        self.cancelled = 0
        self.proxy = Proxy(self._find, never_stopped, host="127.0.0.1", port=0, tls=None)
        self.port = 0
        self._path = path

    async def _find(self, _endpoint_id: str, _address: str) -> Route:
        try:
            await self.finds.wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)
            self.cancelled += 1
            raise
        return Route(self._path, read_only=False, find_login=self._find_login)

    async def _find_login(self, _role: str, _database: str) -> Login:
        return Login(verifier())

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        length = int.from_bytes(await reader.readexactly(4))
        await reader.readexactly(length - 4)
        writer.write(self.login)
        if self.is_silent:
            await reader.read()
        elif self.login == LOGIN + SIZE:
            model, queried = Model(), b""
            while part := await reader.read(65536):
                queried += part
                writer.write(model.feed(queried.partition(b"max_connections\0")[2] and part))
        writer.close()

    async def connect(self) -> Any:
        return await asyncpg.connect(
            host="127.0.0.1", port=self.port, user="me", password=PASSWORD, database="db",
            ssl=False, server_settings={"options": "endpoint=ep-frost-pooler"},
        )  # fmt: skip


@pytest.fixture
async def computes(path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Computes]:
    monkeypatch.setattr("neonctl_local.postgres.proxy.connector.RETRY_DELAYS", (0.0,))
    computes = Computes(path)
    async with await asyncio.start_unix_server(computes.serve, path):
        computes.port = await computes.proxy.start()
        yield computes
        await computes.proxy.stop()


async def test_client_learns_that_its_server_died_during_the_login(computes: Computes) -> None:
    descriptors = await asyncio.to_thread(count_descriptors)
    for length in range(len(authentication(0)), len(LOGIN + SIZE)):
        computes.login = (LOGIN + SIZE)[:length]
        with pytest.raises(asyncpg.PostgresError, match=r"server conn crashed\?"):
            await computes.connect()
    await until(lambda: asyncio.to_thread(lambda: count_descriptors() <= descriptors))
    computes.login = LOGIN + SIZE
    connection = await computes.connect()
    assert await connection.execute("SELECT 'one'") == "SELECT 1"
    await connection.close()


@pytest.mark.parametrize("login", [LOGIN, LOGIN[:-1]])
async def test_login_waits_a_limited_time_for_a_silent_server(
    computes: Computes, monkeypatch: pytest.MonkeyPatch, login: bytes
) -> None:
    monkeypatch.setattr(pooler, "_LOGIN_TIMEOUT", 0.05)
    computes.login, computes.is_silent = login, True
    async with asyncio.timeout(5):
        with pytest.raises(asyncpg.PostgresError, match=r"server conn crashed\?"):
            await computes.connect()


async def test_stop_waits_for_servers_that_are_being_opened(computes: Computes) -> None:
    busy, client = await computes.connect(), await computes.connect()
    await busy.execute("BEGIN")
    computes.finds.clear()
    query = asyncio.create_task(client.execute("SELECT 'one'"))
    await asyncio.sleep(0.02)
    await computes.proxy.stop()
    assert computes.cancelled == 1
    with pytest.raises(asyncpg.PostgresError):
        await query
    assert busy.is_closed()
