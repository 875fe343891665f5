"""Backends are opened and closed completely, and the migrations make the parent of all branches."""

import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from neonctl_async import ConnectionUri, ServerError
from neonctl_local import Durations, LocalControlPlane
from neonctl_local.postgres.binaries import find_installations
from neonctl_local.postgres.errors import PostgresUnavailableError
from pytest_neonctl_async.backend import Backend
from pytest_neonctl_async.background_loop import BackgroundLoop
from pytest_neonctl_async.cloud import CloudAccount, open_cloud
from pytest_neonctl_async.local import DatabaseBackend, open_local
from pytest_neonctl_async.migrations import Preparation
from pytest_neonctl_async.naming import is_parent, run_prefix
from pytest_neonctl_async.once import LocalClaims, perform_once
from pytest_neonctl_async.server import ControlServer
from pytest_neonctl_async.server_process import ServerURLs
from tests.pytest_neonctl_async.conftest import NO_MIGRATIONS
from tests.support.databases import execute


def once(migrate: Callable[[ConnectionUri], object]) -> Preparation:
    """Return a preparation for the processes of a test run, which run ``migrate`` once."""
    return Preparation(migrate, partial(perform_once, LocalClaims()))


def default_parent(backend: Backend) -> str | None:
    """Return the default parent of new branches, after a check that another one can be chosen."""
    with backend.branches(backend.project().id) as factory:
        child = factory.create().branch
        grandchild = factory.create(parent_id=child.id).branch
        assert grandchild.parent_id == child.id
        return child.parent_id


def test_closed_backend_leaves_no_thread(urls: ServerURLs) -> None:
    before = threading.active_count()
    with open_local(urls, "a", NO_MIGRATIONS, postgres=False):
        assert threading.active_count() > before
    assert threading.active_count() == before


def test_migrated_branch_is_the_parent_at_neon_and_migrated_once(account: CloudAccount) -> None:
    migrated: list[ConnectionUri] = []
    preparation = once(migrated.append)
    with (
        open_cloud(account, "0a0a0a0a", preparation) as first,
        open_cloud(account, "0a0a0a0a", preparation) as second,
    ):
        [uri] = migrated
        assert uri.reveal().startswith("postgresql://")
        [branch] = [
            branch
            for branch in first.loop.call(first.neon.branches.list(account.project_id).collect())
            if not branch.default
        ]
        assert is_parent(branch.name)
        assert branch.name.startswith(run_prefix("0a0a0a0a"))
        assert branch.expires_at is None
        assert default_parent(first) == default_parent(second) == branch.id


def test_failed_migrations_fail_every_backend_and_run_once(account: CloudAccount) -> None:
    calls: list[ConnectionUri] = []

    async def migrate(uri: ConnectionUri) -> None:
        calls.append(uri)
        raise ValueError("no such table")

    preparation = once(migrate)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="could not be prepared: ValueError: no such table"):
            with open_cloud(account, "0a0a0a0a", preparation):
                pass
    assert len(calls) == 1


@pytest.fixture
def urls_of_databases(server_loop: BackgroundLoop) -> Iterator[ServerURLs]:
    """A local control plane with databases, and its control server."""
    try:
        find_installations()
    except PostgresUnavailableError as error:
        pytest.skip(str(error))
    with server_loop.enter(
        LocalControlPlane(durations=Durations(default=0), postgres=True)
    ) as server:
        control = ControlServer(server)
        server_loop.call(control.start())
        yield ServerURLs(server.base_url, control.url, control.token)
        server_loop.call(control.stop())


async def create_table(uri: ConnectionUri) -> None:
    await execute(uri.psycopg, "CREATE TABLE people AS SELECT 'Ada' AS name", "SELECT 1")


def rows(backend: Backend) -> int:
    """Return the number of rows of a new branch, and insert another one."""
    with backend.branches(backend.project().id) as factory:
        uri = factory.create().connection_uri.reveal()
        count: int = backend.loop.call(execute(uri, "SELECT count(*) FROM people"))
        backend.loop.call(execute(uri, "INSERT INTO people VALUES ('Grace')", "SELECT 1"))
    backend.reset()
    return count


@pytest.mark.postgres
def test_branches_of_all_workers_start_with_the_migrated_data(
    urls_of_databases: ServerURLs,
) -> None:
    preparation = once(create_table)
    with (
        open_local(urls_of_databases, "a", preparation, postgres=True) as first,
        open_local(urls_of_databases, "a", preparation, postgres=True) as second,
    ):
        assert first.project().id != second.project().id
        assert [rows(first), rows(second), rows(first), rows(second)] == [1, 1, 1, 1]


@pytest.mark.postgres
def test_databases_without_migrations_are_empty(urls_of_databases: ServerURLs) -> None:
    with open_local(urls_of_databases, "a", NO_MIGRATIONS, postgres=True) as backend:
        with backend.branches(backend.project().id) as factory:
            uri = factory.create(timeout=None).connection_uri.reveal()
            assert backend.loop.call(execute(uri, "SELECT to_regclass('people') IS NULL"))


@pytest.mark.postgres
def test_failed_work_on_a_database_is_an_error_with_its_reason(
    urls_of_databases: ServerURLs,
) -> None:
    with open_local(urls_of_databases, "a", NO_MIGRATIONS, postgres=True) as backend:
        assert isinstance(backend, DatabaseBackend)
        call = backend.tenant.call("publish_template", str, branch_id="br-gone-away-12345678")
        with pytest.raises(ServerError, match="no data of br-gone-away-12345678"):
            backend.loop.call(call)
