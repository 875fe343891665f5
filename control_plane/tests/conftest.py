"""A local control plane for each test, with a clock that only the test advances."""

import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane.tests.client import Client, serve
from neonctl_local import LocalControlPlane, ManualClock
from neonctl_local.postgres.binaries import find_installations
from neonctl_local.postgres.copying import remove
from neonctl_local.postgres.errors import PostgresUnavailableError
from tests.conftest import (
    clean_environment,
    fail_on_blocked_loop,
    fail_on_leftover_task,
    interruptible,
    neon,
    no_task_is_left,
    pytest_asyncio_loop_factories,
    refuse_unmarked_processes,
)
from tests.support.postgres import skip_without_postgres

__all__ = [
    "clean_environment",
    "fail_on_blocked_loop",
    "fail_on_leftover_task",
    "interruptible",
    "neon",
    "no_task_is_left",
    "pytest_asyncio_loop_factories",
    "refuse_unmarked_processes",
]
"""The rules and fixtures of every test, which these tests share with those of the client."""


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that the account of the servers can enter, unlike pytest's ``tmp_path``."""
    directory = Path(tempfile.mkdtemp(prefix="neonctl-test-")).resolve()
    directory.chmod(0o711)
    yield directory
    remove(directory)


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of 168 MB. The test is skipped where it cannot be mounted."""
    if sys.platform != "linux":
        pytest.skip("needs the tmpfs of Linux")
    directory = Path(tempfile.mkdtemp(prefix="neonctl-test-"))
    directory.chmod(0o711)
    mount = ["mount", "-t", "tmpfs", "-o", "size=168m,mode=711", "none", str(directory)]
    try:
        mounted = subprocess.run(mount, check=False, capture_output=True, text=True)
        if mounted.returncode:
            pytest.skip(f"a tmpfs cannot be mounted: {mounted.stderr.strip()}")
        yield directory
        subprocess.run(["umount", str(directory)], check=True)
    finally:
        directory.rmdir()


@pytest.fixture(scope="session")
def require_postgres() -> None:
    """Skip the tests on a machine without Postgres."""
    skip_without_postgres()


@pytest.fixture(scope="session")
def installed() -> frozenset[int]:
    """The major versions of Postgres on this machine."""
    try:
        return frozenset(find_installations())
    except PostgresUnavailableError:
        return frozenset()


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that only the test advances."""
    return ManualClock()


@pytest.fixture
async def api(clock: ManualClock, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """Run a local control plane, and open a client with the first key, of an administrator.

    The ``control_plane`` marker of a test has the settings. By default, operations take one second.
    """
    marker = request.node.get_closest_marker("control_plane")
    settings: dict[str, Any] = dict(marker.kwargs) if marker else {}
    async with serve(clock=clock, **settings) as client:
        yield client


@pytest.fixture
def control_plane(api: Client) -> LocalControlPlane:
    """Return the control plane of the client."""
    return api.control_plane


@pytest.fixture
async def project_id(api: Client) -> str:
    """Create a project of the first organization. Its two operations are running."""
    created = await api.project()
    return str(created["project"]["id"])


@pytest.fixture
async def branch_path(api: Client, clock: ManualClock, project_id: str) -> str:
    """Return the path of the first branch of the project. Its compute is running."""
    clock.advance(9)
    (branch,) = (await api.get(f"/projects/{project_id}/branches"))["branches"]
    return f"/projects/{project_id}/branches/{branch['id']}"
