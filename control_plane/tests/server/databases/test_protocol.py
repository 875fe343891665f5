"""How logins are refused and sessions interrupted, by kind and way.

The texts are those of Neon's proxy and of Postgres, the codes are those of Postgres. Logins that
take too long are in ``postgres/proxy/test_proxy.py``.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import aiohttp
import pytest

from control_plane.tests.postgres.proxy.clients import SSL_REQUEST
from control_plane.tests.server.conftest import Plane
from control_plane.tests.server.serverless.test_websocket import Session, address_of
from neonctl_async.types import AllowedIps, ProjectSettings
from neonctl_local import PostgresSettings
from neonctl_local.postgres.client import messages
from neonctl_local.postgres.client.session import StatementError, WireSession, startup_message
from neonctl_local.postgres.proxy.routing import MISSING_ENDPOINT
from neonctl_local.postgres.proxy.startup import CancelRequest
from neonctl_local.server.databases.routing import DISABLED, UNKNOWN
from tests.support.databases import databases
from tests.support.until import until

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("require_postgres")]

EVERY: Final = ("tls", "pooled", "option", "http", "websocket")
"""Over TLS to the host of a compute or of its pooler, or with its id in ``options``; in SQL over
HTTP; over a WebSocket.
"""


class Case(NamedTuple):
    """What a client sends that is not right, on some ways, and what it gets."""

    kind: str
    ways: tuple[str, ...]
    sent: Mapping[str, str]
    code: str
    text: str


CASES: Final = (
    Case("login", EVERY, {}, "", ""),
    Case(
        "login",
        EVERY,
        {"password": "wrong"},
        "28P01",
        "password authentication failed for user 'neondb_owner'",
    ),
    Case(
        "login",
        EVERY,
        {"user": "nobody"},
        "28P01",
        "password authentication failed for user 'nobody'",
    ),
    Case(
        "login",
        ("tls", "pooled", "option", "websocket"),
        {"user": ""},
        "28000",
        "Parameter 'user' is missing in startup packet.",
    ),
    Case("login", EVERY, {"database": "absent"}, "3D000", 'database "absent" does not exist'),
    Case("hosts", EVERY, {"endpoint": "ep-no-such-12345678"}, "XX000", UNKNOWN),
    Case("hosts", EVERY, {"endpoint": "mistyped"}, "XX000", UNKNOWN),
    Case("hosts", EVERY, {"endpoint": "{branch}"}, "XX000", UNKNOWN),
    Case(
        "hosts",
        ("option",),
        {"endpoint": "ep_frost"},
        "XX000",
        "Project name ('ep_frost') must contain only alphanumeric characters and hyphen.",
    ),
    Case(
        "hosts",
        ("tls", "http", "websocket"),
        {"options": "endpoint=ep-other"},
        "XX000",
        "Inconsistent project name inferred from SNI ('{endpoint}') and project option"
        " ('ep-other').",
    ),
    Case("hosts", ("nowhere",), {}, "XX000", MISSING_ENDPOINT),
    Case("options", ("tls", "option", "http"), {"options": "-c search_path=shop"}, "", ""),
    Case(
        "options",
        ("pooled",),
        {"options": "-c search_path=shop"},
        "08P01",
        "unsupported startup parameter in options: search_path. Please use unpooled connection or"
        " remove this parameter from the startup package. More details: https://neon.tech/docs/"
        "connect/connection-errors#unsupported-startup-parameter",
    ),
    Case(
        "tls",
        ("plain",),
        {},
        "XX000",
        "connection is insecure (try using `sslmode=require`)",
    ),
)


LOCK: Final = "SELECT pg_advisory_xact_lock(48)"
"""It waits for the session of the test, which has the lock."""


class Interruption(NamedTuple):
    """A statement in a session, what interrupts it, and what the client gets."""

    kind: str
    statement: str
    cancelled: str
    """The session that the cancel request is for, "" without one."""
    code: str
    text: str


INTERRUPTIONS: Final = (
    Interruption("cancel", LOCK, "this", "57014", "canceling statement due to user request"),
    Interruption("cancel", LOCK, "this, with another secret", "", ""),
    Interruption("cancel", LOCK, "one that has ended", "", ""),
    Interruption(
        "timeouts",
        f"SET statement_timeout = 50; {LOCK}",
        "",
        "57014",
        "canceling statement due to statement timeout",
    ),
    Interruption(
        "timeouts",
        f"SET lock_timeout = 50; {LOCK}",
        "",
        "55P03",
        "canceling statement due to lock timeout",
    ),
    Interruption(
        "timeouts",
        "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 50",
        "",
        "25P03",
        "terminating connection due to idle-in-transaction timeout",
    ),
)


class Network:
    """A project whose computes require TLS, and the ways to them."""

    def __init__(self, plane: Plane, http: aiohttp.ClientSession) -> None:
        self.plane = plane
        self.http = http
        uri = urlsplit(plane.uri)
        self.port = uri.port
        self.host = plane.project.endpoints[0].host
        self.names = {"endpoint": plane.project.endpoints[0].id, "branch": plane.root_id}
        self.login = {
            "user": uri.username or "",
            "password": unquote(uri.password or ""),
            "database": uri.path[1:],
            "endpoint": self.names["endpoint"],
            "options": "",
        }

    async def outcome(self, way: str, sent: Mapping[str, str]) -> tuple[str, str]:
        """Return the code and the text of the error that a login gets, "" if it succeeds."""
        filled = {name: value.format(**self.names) for name, value in sent.items()}
        login = self.login | filled
        if way == "pooled":
            login["endpoint"] += "-pooler"
        host = self._host_of(login["endpoint"])
        if way == "http":
            return await self._over_http(login, host)
        if way in ("option", "nowhere"):
            host = "localhost"
        if way == "option":
            login["options"] = f"{login['options']} endpoint={login['endpoint']}"
        parameters = {name: login[name] for name in ("user", "database", "options")}
        if way == "websocket":
            return await self._over_websocket(parameters, login["password"], host)
        return await self._over_wire(
            parameters, login["password"], None if way == "plain" else host
        )

    @asynccontextmanager
    async def session(self, *, pooled: bool) -> AsyncGenerator[WireSession]:
        """Log in over TLS."""
        host = self._host_of(self.names["endpoint"] + ("-pooler" if pooled else ""))
        async with self._connection(host) as session:
            parameters = {name: self.login[name] for name in ("user", "database")}
            await session.send(startup_message(parameters).encode())
            await session.log_in(self.login["password"])
            yield session

    async def cancel(self, key: bytes) -> None:
        """Send a cancel request, and wait until it was executed."""
        async with self._connection(self.host) as connection:
            await connection.send(CancelRequest(key).encode())
            with suppress(ConnectionError):
                assert await connection.reader.read() == b""

    def _host_of(self, endpoint: str) -> str:
        return self.host.replace(self.names["endpoint"], endpoint)

    @asynccontextmanager
    async def _connection(self, server_name: str | None) -> AsyncGenerator[WireSession]:
        """Connect, over TLS if there is a name."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        session = WireSession(reader, writer)
        try:
            if server_name is not None:
                await session.send(SSL_REQUEST)
                assert await reader.readexactly(1) == b"S"
                context = ssl.create_default_context()
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                await writer.start_tls(context, server_hostname=server_name)
            yield session
        finally:
            session.abort()

    async def _over_wire(
        self, parameters: Mapping[str, str], password: str, server_name: str | None
    ) -> tuple[str, str]:
        async with self._connection(server_name) as session:
            await session.send(startup_message(parameters).encode())
            try:
                await session.log_in(password)
            except StatementError as error:
                return error.message.sqlstate, error.message.message
            return "", ""

    async def _over_http(self, login: Mapping[str, str], host: str) -> tuple[str, str]:
        user, password, options = (quote(login[n]) for n in ("user", "password", "options"))
        uri = f"postgresql://{user}:{password}@{host}/{login['database']}?options={options}"
        async with self.http.post(
            self.plane.control_plane.sql_url,
            json={"query": "SELECT 1"},
            headers={"Neon-Connection-String": uri},
        ) as response:
            content = await response.json()
        assert response.status == (400 if "message" in content else 200)
        return content.get("code", ""), content.get("message", "")

    async def _over_websocket(
        self, parameters: Mapping[str, str], password: str, host: str
    ) -> tuple[str, str]:
        url = f"{address_of(self.plane.control_plane)}?address={host}:5432"
        async with self.http.ws_connect(url) as websocket:
            sent = startup_message(parameters).encode() + messages.password(password)
            await websocket.send_bytes(sent)
            kind, payload = (await Session(websocket).until(b"E", b"Z"))[-1]
        error = messages.decode_message(payload) if kind == b"E" else None
        return ("", "") if error is None else (error.sqlstate, error.message)


@pytest.fixture
async def network() -> AsyncIterator[Network]:
    async with databases(postgres=PostgresSettings(tls=True)) as (control_plane, neon):
        project = await neon.projects.create(name="test", wait=True)
        async with aiohttp.ClientSession() as http:
            yield Network(Plane(control_plane, neon, project), http)


@pytest.mark.fact("connections-3", "connections-4")
async def test_login_is_refused_with_the_text_of_neon_and_the_code_of_postgres(
    network: Network,
) -> None:
    for kind, ways, sent, code, text in CASES:
        for way in ways:
            expected = (code, text.format(**network.names))
            assert await network.outcome(way, sent) == expected, (kind, way, sent)


@pytest.mark.fact("connections-11", "connections-15")
async def test_login_that_the_api_forbids_is_refused_with_the_text_of_neon(
    network: Network,
) -> None:
    neon, project_id = network.plane.neon, network.plane.project_id
    endpoint_id = network.names["endpoint"]
    await neon.endpoints.update(project_id, endpoint_id, disabled=True, wait=True)
    for way in EVERY:
        assert await network.outcome(way, {}) == ("XX000", DISABLED), way
    await neon.endpoints.update(project_id, endpoint_id, disabled=False, wait=True)
    addresses = AllowedIps(ips=["192.0.2.1"], protected_branches_only=False)
    await neon.projects.update(project_id, settings=ProjectSettings(allowed_ips=addresses))
    text = (
        "This IP address 127.0.0.1 is not allowed to connect to this endpoint. Please add it to the"
        " allowed list in the Neon console. Make sure to check for IPv4 or IPv6 addresses."
    )
    for way in EVERY:
        assert await network.outcome(way, {}) == ("XX000", text), way


async def answer(session: WireSession, statement: str = "") -> tuple[str, str, bool]:
    """Return the code and the text of an error, "" without one, and whether there is a row.

    Without a statement, wait for the error that ends the session.
    """
    if statement:
        await session.send(messages.query(statement))
    code, text, has_row = "", "", False
    while True:
        kind, length = await session.header()
        payload = await session.payload(length)
        has_row = has_row or kind == b"D"
        if kind == b"E":
            error = messages.decode_message(payload)
            code, text = error.sqlstate, error.message
            if not statement:
                break
        elif kind == b"Z":
            break
    return code, text, has_row


async def is_waiting(watcher: WireSession) -> bool:
    """Return whether another session waits for the lock."""
    query = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory'"
    return (await answer(watcher, query))[-1]


@pytest.mark.parametrize("pooled", [False, True], ids=["direct", "pooled"])
async def test_statement_is_interrupted_with_the_text_and_code_of_postgres(
    network: Network, pooled: bool
) -> None:
    async with network.session(pooled=pooled) as ended:
        keys = {"one that has ended": ended.key}
    async with network.session(pooled=False) as watcher:
        for kind, statement, cancelled, code, text in INTERRUPTIONS:
            await answer(watcher, "SELECT pg_advisory_lock(48)")
            async with network.session(pooled=pooled) as session:
                keys["this"] = session.key
                keys["this, with another secret"] = session.key[:-1] + bytes([session.key[-1] ^ 1])
                asked = asyncio.create_task(answer(session, statement))
                if cancelled:
                    await until(lambda: is_waiting(watcher))
                    await network.cancel(keys[cancelled])
                if not code:
                    await answer(watcher, "SELECT pg_advisory_unlock(48)")
                found = await asked
                is_idle = statement.startswith("BEGIN")
                if is_idle:
                    found = await answer(session)
                assert found[:2] == (code, text), (kind, statement, cancelled)
                if not is_idle:
                    assert await answer(session, "SELECT 1") == ("", "", True)
            await answer(watcher, "SELECT pg_advisory_unlock_all()")
