"""Passwords are checked before a compute starts, with what its database accepts at that moment."""

import asyncio
from collections.abc import AsyncIterator
from typing import LiteralString, NamedTuple
from urllib.parse import quote, urlsplit

import aiohttp
import asyncpg
import psycopg
import pytest

from control_plane.tests.server.serverless.test_websocket import Session as WebSocketSession
from control_plane.tests.server.serverless.test_websocket import address_of, greeting
from neonctl_async import NeonClient, OperationFailedError
from neonctl_async.types import ProjectCreated
from neonctl_local import LocalControlPlane
from neonctl_local.postgres.binaries import find_installations
from neonctl_local.postgres.client import messages
from neonctl_local.postgres.configuration import scram_verifier
from tests.support.databases import databases, execute, uri_of

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("require_postgres")]

WAYS = ("direct", "pooled", "http", "websocket")
REFUSED = "28P01"


class Compute(NamedTuple):
    """A project with one compute, and clients of it."""

    control_plane: LocalControlPlane
    neon: NeonClient
    project: ProjectCreated
    http: aiohttp.ClientSession

    @property
    def uri(self) -> str:
        return uri_of(self.project)

    @property
    def names(self) -> tuple[str, str]:
        return self.project.project.id, self.project.endpoints[0].id

    async def suspend(self) -> None:
        await self.neon.endpoints.suspend(*self.names, wait=True)

    async def is_idle(self) -> bool:
        return (await self.neon.endpoints.get(*self.names)).current_state == "idle"

    def uri_with(self, role: str, password: str) -> str:
        parts = urlsplit(self.uri)
        login = f"{quote(role)}:{quote(password)}"
        return parts._replace(netloc=f"{login}@{parts.netloc.rpartition('@')[2]}").geturl()

    async def log_in_everywhere(
        self, role: str, password: str, database: str = "neondb"
    ) -> list[str]:
        """Return the SQLSTATE of a login in each way, or "" for those that succeed."""
        uri = self.uri_with(role, password).replace("/neondb", f"/{database}")
        return [await self.log_in(way, uri) for way in WAYS]

    async def log_in(self, way: str, uri: str) -> str:
        """Return the SQLSTATE of a login, or "" if it succeeds."""
        if way == "http":
            return await self._over_http(uri)
        if way == "websocket":
            return await self._over_websocket(uri)
        if way == "pooled":
            endpoint = self.names[1]
            uri = uri.replace(f"endpoint%3D{endpoint}", f"endpoint%3D{endpoint}-pooler")
            assert "-pooler" in uri
        try:
            connection = await asyncpg.connect(uri, statement_cache_size=0)
        except asyncpg.PostgresError as error:
            return str(error.sqlstate)
        try:
            assert await connection.fetchval("SELECT 1") == 1
        finally:
            await connection.close()
        return ""

    async def _over_http(self, uri: str) -> str:
        headers = {"Neon-Connection-String": uri}
        url = self.control_plane.sql_url
        async with self.http.post(url, json={"query": "SELECT 1"}, headers=headers) as response:
            content = await response.json()
            assert response.status == (400 if "code" in content else 200), content
            return str(content.get("code", ""))

    async def _over_websocket(self, uri: str) -> str:
        async with self.http.ws_connect(address_of(self.control_plane)) as websocket:
            await websocket.send_bytes(greeting(uri))
            kind, payload = (await WebSocketSession(websocket).until(b"E", b"Z"))[-1]
            return messages.decode_message(payload).sqlstate if kind == b"E" else ""


@pytest.fixture(params=["newest", "oldest"])
async def compute(request: pytest.FixtureRequest) -> AsyncIterator[Compute]:
    """A compute of the newest and of the oldest Postgres of this machine."""
    majors = sorted(await asyncio.to_thread(find_installations))
    if request.param == "oldest" and len(majors) == 1:
        pytest.skip("this machine has one version of Postgres")
    major = majors[-1 if request.param == "newest" else 0]
    async with databases() as (control_plane, neon), aiohttp.ClientSession() as http:
        project = await neon.projects.create(name="test", pg_version=major, wait=True)
        yield Compute(control_plane, neon, project, http)


@pytest.mark.fact("connections-3")
async def test_wrong_password_starts_no_compute(compute: Compute) -> None:
    role = urlsplit(compute.uri).username or ""
    await execute(compute.uri, "CREATE ROLE unusable LOGIN", "SELECT 1")
    await compute.suspend()
    for way in WAYS:
        for login in ((role, "wrong"), ("nobody", "secret"), ("unusable", "secret")):
            assert await compute.log_in(way, compute.uri_with(*login)) == REFUSED, way
        assert await compute.is_idle()
    for way in WAYS:
        await compute.suspend()
        assert await compute.log_in(way, compute.uri) == "", way
        assert not await compute.is_idle()


CHANGES: tuple[tuple[LiteralString, str, str], ...] = (
    ("ALTER ROLE maker PASSWORD 'second'", "second", "first"),
    ("ALTER ROLE maker PASSWORD 'pässwörd'", "pässwörd", "second"),
    ("ALTER ROLE maker VALID UNTIL '2000-01-01'", "", "pässwörd"),
    ("ALTER ROLE maker VALID UNTIL 'infinity'", "pässwörd", "first"),
    ("ALTER ROLE maker VALID UNTIL '2999-01-01'", "pässwörd", "second"),
    ("BEGIN; ALTER ROLE maker PASSWORD 'first'; ROLLBACK", "pässwörd", "first"),
    ("ALTER ROLE maker PASSWORD NULL", "", "pässwörd"),
    ("ALTER ROLE maker PASSWORD 'first'", "first", "second"),
    ("DROP ROLE maker", "", "first"),
    ("CREATE ROLE maker LOGIN PASSWORD 'first'", "first", "second"),
    ("ALTER ROLE maker RENAME TO other", "", "first"),
)


@pytest.mark.fact("connections-1")
@pytest.mark.parametrize("suspended", [True, False], ids=["suspended", "running"])
async def test_sql_changes_the_accepted_password_at_once(compute: Compute, suspended: bool) -> None:
    await execute(compute.uri, "CREATE ROLE maker LOGIN PASSWORD 'first'", "SELECT 1")
    assert await compute.log_in_everywhere("maker", "first") == [""] * 4
    for statement, accepted, refused in CHANGES:
        await execute(compute.uri, statement)
        if suspended:
            await compute.suspend()
        assert await compute.log_in_everywhere("maker", refused) == [REFUSED] * 4, statement
        assert await compute.is_idle() == suspended, statement
        if accepted:
            assert await compute.log_in_everywhere("maker", accepted) == [""] * 4, statement


async def test_role_that_sql_locks_out_is_refused_from_the_next_connection_on(
    compute: Compute,
) -> None:
    changes: tuple[tuple[LiteralString, LiteralString, str], ...] = (
        ("ALTER ROLE maker NOLOGIN", "ALTER ROLE maker LOGIN", "28000"),
        (
            "REVOKE CONNECT ON DATABASE shop FROM PUBLIC",
            "GRANT CONNECT ON DATABASE shop TO PUBLIC",
            "42501",
        ),
        (
            "ALTER DATABASE shop ALLOW_CONNECTIONS false",
            "ALTER DATABASE shop ALLOW_CONNECTIONS true",
            "55000",
        ),
        (
            "ALTER ROLE maker CONNECTION LIMIT 0",
            "ALTER ROLE maker CONNECTION LIMIT -1",
            "53300",
        ),
        ("ALTER DATABASE shop RENAME TO shut", "ALTER DATABASE shut RENAME TO shop", "3D000"),
    )
    await execute(compute.uri, "CREATE ROLE maker LOGIN PASSWORD 'first'")
    await execute(compute.uri, "CREATE DATABASE shop")
    for refuse, accept, code in changes:
        assert await compute.log_in_everywhere("maker", "first", "shop") == [""] * 4, refuse
        await execute_until_free(compute.uri, refuse)
        assert await compute.log_in_everywhere("maker", "first", "shop") == [code] * 4, refuse
        await execute(compute.uri, accept)


async def execute_until_free(uri: str, statement: LiteralString) -> None:
    """Run a statement once no session uses its database any more."""
    async with asyncio.timeout(30):
        while True:
            try:
                await execute(uri, statement)
            except psycopg.errors.ObjectInUse:
                await asyncio.sleep(0.1)
            else:
                return


@pytest.mark.fact("connections-2")
async def test_reset_by_the_api_counts_for_a_suspended_compute(compute: Compute) -> None:
    role, project = urlsplit(compute.uri).username or "", compute.project
    for way in WAYS:
        await compute.suspend()
        # A reset starts the compute, unless this fails. Then the next start applies it.
        await compute.control_plane.fail_next("start_compute", error="no capacity")
        reset = await compute.neon.roles.reset_password(project.project.id, project.branch.id, role)
        with pytest.raises(OperationFailedError):
            await compute.neon.operations.wait(reset)
        assert reset.role.password is not None
        assert await compute.log_in(way, compute.uri) == REFUSED
        assert await compute.is_idle()
        new = compute.uri_with(role, reset.role.password.reveal())
        assert await compute.log_in(way, new) == "", way


@pytest.mark.parametrize("suspended", [True, False], ids=["suspended", "running"])
async def test_costly_password_delays_nobody(compute: Compute, suspended: bool) -> None:
    """Its role logs in with SCRAM, where the client computes the iterations."""
    costly = scram_verifier("costly", b"salt", 150_000)
    endless = costly.replace("150000", "4000000")  # Postgres needs four seconds to store it
    await execute(compute.uri, "CREATE ROLE maker LOGIN", "CREATE ROLE attacker LOGIN")
    async with await psycopg.AsyncConnection.connect(compute.uri, autocommit=True) as connection:
        for role, verifier in (("maker", costly), ("attacker", endless)):
            statement = f"ALTER ROLE {role} PASSWORD '{verifier}'"
            await connection.execute(statement.encode())
    if suspended:
        await compute.suspend()
    attack = compute.uri_with("attacker", "wrong")
    async with asyncio.timeout(5):
        refusals = await asyncio.gather(
            *(compute.log_in(way, attack) for way in ("http", "websocket") for _ in range(12))
        )
    assert set(refusals) == {"28000"}
    assert await compute.is_idle() == suspended
    assert await compute.log_in("http", compute.uri_with("maker", "costly")) == "28000"
    for way in ("direct", "pooled"):
        if suspended:
            await compute.suspend()
        assert await compute.log_in(way, compute.uri_with("maker", "costly")) == "", way
