"""Opening the databases of a local control plane, and its errors."""

import asyncio
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from neonctl_async import NeonClient
from neonctl_local import LocalControlPlane, PostgresSettings, PostgresUnavailableError
from neonctl_local.engine import databases as tables
from neonctl_local.server.databases.opening import Databases
from tests.support.databases import (
    READ_WRITE,
    client,
    databases,
    execute,
    uri_of,
)
from tests.support.names import resolve

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("require_postgres")]


async def test_without_the_packages_of_the_extra_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(RuntimeError, match=r"pip install 'neonctl-local\[postgres\]'"):
        await LocalControlPlane(postgres=True).start()


async def test_directory_without_postgres_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=str(tmp_path)):
        await LocalControlPlane(postgres=tmp_path).start()


async def test_taken_port_is_an_error_of_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=r"(?i)address already in use"):
            await LocalControlPlane(postgres=PostgresSettings(port=port)).start()


async def test_tls_is_verified_with_the_authority_in_the_uri() -> None:
    async with databases(postgres=PostgresSettings(tls=True)) as (_, neon):
        project = await neon.projects.create(name="test", wait=True)
        assert "sslmode=verify-full" in uri_of(project)
        assert await execute(uri_of(project), "SELECT 1") == 1


async def test_databases_of_a_durable_control_plane_are_durable() -> None:
    async with databases(durable=True) as (_, neon):
        project = await neon.projects.create(name="test", wait=True)
        assert await execute(uri_of(project), "SHOW fsync") == "on"


async def test_connection_uris_have_the_exposed_host_and_its_certificate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolve(monkeypatch, "control-plane", "127.0.0.1")
    settings = PostgresSettings(tls=True)
    async with (
        LocalControlPlane(host="0.0.0.0", expose="control-plane", postgres=settings) as server,
        NeonClient(server.api_key, base_url=server.base_url, allow_http=["control-plane"]) as neon,
    ):
        project = await neon.projects.create(name="test", wait=True)
        assert "@control-plane:" in uri_of(project)
        assert await execute(uri_of(project), "SELECT 1") == 1


async def test_host_of_a_compute_connects_in_a_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve(monkeypatch, "db.localhost", "127.0.0.1")
    async with databases(postgres=PostgresSettings(domain="db.localhost")) as (_, neon):
        project = await neon.projects.create(name="test", wait=True)
        [compute] = project.endpoints
        uri = urlsplit(uri_of(project))
        assert compute.host == uri.hostname == f"{compute.id}.db.localhost"
        assert (compute.proxy_host, uri.query) == ("db.localhost", "sslmode=require")
        assert await execute(uri_of(project), "SELECT 1") == 1


@pytest.mark.parametrize("host", ["{0}.db.localhost", "{0}.us-east-2.aws.neon.invalid"])
async def test_certificate_covers_the_hosts_of_computes(
    monkeypatch: pytest.MonkeyPatch, host: str, open_directory: Path
) -> None:
    resolve(monkeypatch, "db.localhost", "127.0.0.1")
    settings = PostgresSettings(domain="db.localhost")
    data = open_directory / "data.db"
    async with databases(postgres=settings, data=data) as (_, neon):
        project = await neon.projects.create(name="test", wait=True)
        uri = urlsplit(uri_of(project))
        connecting = psycopg.AsyncConnection.connect(
            host=host.format(project.endpoints[0].id),
            hostaddr="127.0.0.1",
            port=uri.port,
            user=uri.username,
            password=uri.password,
            dbname="neondb",
            sslmode="verify-full",
            sslrootcert=str(open_directory / "data.db.d" / "ca.pem"),
        )
        async with await connecting as connection:
            assert await (await connection.execute("SELECT 1")).fetchone() == (1,)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("", r"ep-check\.db\.localhost:\d+ cannot be connected to .*libnss-myhostname"),
        ("127.0.0.2", r"ep-check\.db\.localhost:\d+ cannot be connected to"),
    ],
)
async def test_domain_that_does_not_lead_to_the_server_is_refused(
    monkeypatch: pytest.MonkeyPatch, address: str, reason: str
) -> None:
    resolve(monkeypatch, "db.localhost", address)
    settings = PostgresSettings(domain="db.localhost")
    with pytest.raises(PostgresUnavailableError, match=reason):
        await LocalControlPlane(postgres=settings).start()


@pytest.mark.parametrize("domain", ["", "localhost", "Db.localhost", "a..b", "-a.b", "*.a.b"])
def test_domain_has_two_labels(domain: str) -> None:
    with pytest.raises(ValueError, match="at least two labels"):
        PostgresSettings(domain=domain)


async def test_tenants_share_the_proxy() -> None:
    async with databases() as (control_plane, neon):
        tenant = await control_plane.add_tenant()
        async with client(control_plane, tenant.api_key) as other:
            mine = await neon.projects.create(name="a", wait=True)
            theirs = await other.projects.create(name="b", wait=True)
            await other.branches.create(theirs.project.id, endpoints=[READ_WRITE], wait=True)
            for project in (mine, theirs):
                assert await execute(uri_of(project), "SELECT 1") == 1


class TwoSweeps:
    """A tenant with deleted branches. During the first sweep, one more is deleted, and swept."""

    def __init__(self) -> None:
        self.deleted = [tables.Deleted(1, "br-1", frozenset({"br-1", "br-2"}))]
        self.measured = 0
        self.measures_again = asyncio.Event()
        self.first_ends = asyncio.Event()
        self.second: asyncio.Task[None] | None = None
        tenants: Any = [SimpleNamespace(database=self, databases=None)]
        unused: Any = None
        clusters: Any = self
        self.databases = Databases(clusters, tenants, unused, unused, unused)

    def ids(self) -> set[str]:
        return {"br-1", "br-2", "br-3"}

    def is_running(self, _id: str) -> bool:
        return False

    async def delete(self, *_ids: str) -> None:
        """Delete nothing: all clusters are needed."""

    async def read(self, function: object, *_arguments: object) -> object:
        return [*self.deleted] if function is tables.recoverable else set[str]()

    async def size(self, _id: str) -> int:
        self.measured += 1
        if self.measured == 2:
            self.deleted.append(tables.Deleted(2, "br-3", frozenset({"br-3"})))
            self.second = asyncio.create_task(self.databases.sweep())
            await self.measures_again.wait()
        elif self.measured == 3:
            self.measures_again.set()
            await self.first_ends.wait()
        return 1


async def test_overlapping_sweeps_measure_the_deleted_branches() -> None:
    sweeps = TwoSweeps()
    await sweeps.databases.sweep()
    sweeps.first_ends.set()
    assert sweeps.second is not None
    await sweeps.second
    measured = sweeps.measured
    await sweeps.databases.sweep()
    assert sweeps.measured == measured
