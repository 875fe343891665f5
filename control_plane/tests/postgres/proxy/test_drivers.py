"""Drivers connect through the proxy with and without TLS, and carry many bytes."""

import asyncio
import importlib
import os
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest

from control_plane.tests.postgres.proxy.clients import SSL_REQUEST, exchange, parse_refusal
from control_plane.tests.postgres.proxy.conftest import Computes
from control_plane.tests.postgres.proxy.server import DATABASE, PASSWORD, ROLE, Server
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.proxy.certificates import Certificates, private_certificates

pytestmark = pytest.mark.postgres

HOST = "ep-frost.neon.invalid"
MUCH = 20_000_000


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    directory: Path = tmp_path_factory.mktemp("certificates")
    return private_certificates(directory, ["*.neon.invalid"])


@pytest.fixture
async def encrypted(server: Server, certificates: Certificates) -> AsyncIterator[Computes]:
    """A proxy that requires TLS."""
    async with Computes(server, tls=certificates.context, domains=["neon.invalid"]) as computes:
        yield computes


def login(computes: Computes, certificates: Certificates, **others: Any) -> dict[str, Any]:
    """Return the arguments of psycopg that connect with TLS, to an endpoint by its host name."""
    tls = {"sslmode": "verify-full", "sslrootcert": str(certificates.ca_file)}
    host = {"host": HOST, "hostaddr": "127.0.0.1"}
    return computes.login(None, **(host | tls | others))


NEGOTIATIONS = [
    pytest.param({}, id="request"),
    pytest.param(
        {"sslnegotiation": "direct"},
        id="direct",
        marks=pytest.mark.skipif(
            psycopg.pq.version() < 170000, reason="libpq starts TLS directly since version 17"
        ),
    ),
]


@pytest.mark.parametrize("negotiation", NEGOTIATIONS)
async def test_libpq_finds_the_compute_by_the_host_name(
    encrypted: Computes, certificates: Certificates, negotiation: dict[str, str]
) -> None:
    arguments = login(encrypted, certificates, **negotiation)
    async with await psycopg.AsyncConnection.connect(**arguments) as connection:
        cursor = await connection.execute("select repeat('x', %s)", [MUCH])
        row = await cursor.fetchone()
        assert row is not None
        assert len(row[0]) == MUCH
    assert encrypted.requested == ["ep-frost"]


async def test_query_is_cancelled_through_tls(
    encrypted: Computes, certificates: Certificates
) -> None:
    arguments = login(encrypted, certificates, autocommit=True)
    async with await psycopg.AsyncConnection.connect(**arguments) as connection:
        query = asyncio.create_task(connection.execute("select pg_sleep(60)"))
        await asyncio.sleep(0.01)
        while not query.done():  # a request that arrives before the query has no effect
            await connection.cancel_safe()
            await asyncio.wait([query], timeout=0.1)
        with pytest.raises(psycopg.errors.QueryCanceled):
            await query


@pytest.mark.parametrize("host", [HOST, HOST.replace(".", "-pooler.", 1)])
@pytest.mark.parametrize("mode", ["require", "verify-full"])
async def test_libpq_binds_the_channel_to_the_certificate(
    encrypted: Computes, certificates: Certificates, mode: str, host: str
) -> None:
    arguments = login(encrypted, certificates, channel_binding="require", sslmode=mode, host=host)
    async with await psycopg.AsyncConnection.connect(**arguments) as connection:
        cursor = await connection.execute("select %s::text || %s", ["x" * 1_000_000, "y"])
        assert await cursor.fetchone() == ("x" * 1_000_000 + "y",)
    arguments["password"] = "wrong"
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        await psycopg.AsyncConnection.connect(**arguments)


@pytest.mark.parametrize("host", ["mistyped.neon.invalid", "br-frost.neon.invalid"])
async def test_host_that_nobody_knows_is_refused_before_a_password_is_requested(
    encrypted: Computes, certificates: Certificates, host: str
) -> None:
    arguments = login(encrypted, certificates, channel_binding="require", host=host)
    with pytest.raises(psycopg.OperationalError, match="FATAL:  The requested endpoint could not"):
        await psycopg.AsyncConnection.connect(**arguments)


async def test_wrong_certificate_is_refused_by_the_binding(
    encrypted: Computes, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates.context, "binding", b"another certificate")
    with pytest.raises(psycopg.OperationalError, match="secure channel data mismatch"):
        await psycopg.AsyncConnection.connect(**login(encrypted, certificates))


async def test_client_that_does_not_trust_the_certificate_is_disconnected(
    encrypted: Computes,
) -> None:
    arguments = encrypted.login(sslmode="verify-full", sslrootcert="system")
    with pytest.raises(psycopg.OperationalError, match="certificate"):
        await psycopg.AsyncConnection.connect(**arguments)


async def test_asyncpg_sends_and_receives_much_through_tls(
    encrypted: Computes, certificates: Certificates
) -> None:
    context = ssl.create_default_context(cafile=certificates.ca_file)
    connection = await asyncpg.connect(
        host="localhost",
        port=encrypted.port,
        user=ROLE,
        password=PASSWORD,
        database=DATABASE,
        ssl=context,
        server_settings={"options": "endpoint=ep-frost"},
    )
    try:
        assert await connection.fetchval("select length($1::text)", "x" * MUCH) == MUCH
        assert len(await connection.fetchval("select repeat('x', $1)", MUCH)) == MUCH
    finally:
        await connection.close()


async def test_pg8000_connects_with_the_endpoint_in_the_password(computes: Computes) -> None:
    def query() -> Any:
        native: Any = importlib.import_module("pg8000.native")  # has no types
        password = f"endpoint=ep-frost;{PASSWORD}"
        connection = native.Connection(
            ROLE, "127.0.0.1", DATABASE, computes.port, password=password
        )
        try:
            return connection.run("select 1")
        finally:
            connection.close()

    assert await asyncio.to_thread(query) == [[1]]


async def test_psql_connects_with_a_uri(computes: Computes, installation: Installation) -> None:
    psql = installation.program("psql")
    if not await asyncio.to_thread(psql.exists):
        pytest.skip("this installation has no psql")
    uri = f"postgresql://{ROLE}@127.0.0.1:{computes.port}/{DATABASE}?options=endpoint%3Dep-frost"
    process = await asyncio.create_subprocess_exec(
        *(psql, uri, "--no-psqlrc", "--tuples-only", "--command=select 6 * 7"),
        stdout=subprocess.PIPE,
        env={**os.environ, "PGPASSWORD": PASSWORD},
    )
    output, _ = await process.communicate()
    assert output.split() == [b"42"]


async def test_copy_carries_much_in_both_directions(computes: Computes) -> None:
    arguments = computes.login()
    lines = b"".join(b"%d\n" % number for number in range(50_000))
    async with await psycopg.AsyncConnection.connect(**arguments) as connection:
        await connection.execute("create temporary table copied (number int)")
        async with connection.cursor().copy("copy copied from stdin") as copy:
            await copy.write(lines)
        async with connection.cursor().copy("copy copied to stdout") as copy:
            assert b"".join([bytes(data) async for data in copy]) == lines


async def test_garbage_instead_of_tls_ends_the_connection(encrypted: Computes) -> None:
    assert (await exchange(encrypted.port, SSL_REQUEST, b"garbage" * 10)).startswith(b"S")
    assert not (await exchange(encrypted.port, b"\x16garbage" * 10)).startswith(b"E")
    refusal = parse_refusal(await exchange(encrypted.port, b"GET / HTTP/1.1\r\n\r\n"))
    assert refusal == ("FATAL", "08P01", "invalid length of startup packet")
