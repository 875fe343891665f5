"""Backends are opened and closed completely, and the migrations make the parent of all branches."""

import threading
from collections.abc import Callable
from functools import partial

import pytest

from neonctl_async.testing.plugin.backends import Backend
from neonctl_async.testing.plugin.migrations import Preparation
from neonctl_async.testing.plugin.naming import is_parent, run_prefix
from neonctl_async.testing.plugin.opening import open_cloud, open_local
from pytest_neonctl_async.once import LocalClaims, perform_once
from pytest_neonctl_async.targets import CloudAccount, ServerURLs
from tests.testing.plugin.conftest import NO_MIGRATIONS


def once(migrate: Callable[[str], object]) -> Preparation:
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


def test_migrations_without_databases_are_refused(urls: ServerURLs) -> None:
    with pytest.raises(RuntimeError, match="neon_migrations needs databases: set neon_postgres"):
        with open_local(urls, "a", once(print), postgres=False):
            pass


def test_migrated_branch_is_the_parent_at_neon_and_migrated_once(account: CloudAccount) -> None:
    migrated: list[str] = []
    preparation = once(migrated.append)
    with (
        open_cloud(account, "0a0a0a0a", preparation) as first,
        open_cloud(account, "0a0a0a0a", preparation) as second,
    ):
        [uri] = migrated
        assert uri.startswith("postgresql://")
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
    calls: list[str] = []

    async def migrate(uri: str) -> None:
        calls.append(uri)
        raise ValueError("no such table")

    preparation = once(migrate)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="could not be prepared: ValueError: no such table"):
            with open_cloud(account, "0a0a0a0a", preparation):
                pass
    assert len(calls) == 1
