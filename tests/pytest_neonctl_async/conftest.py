"""Test suites that run as users run them, and the parts of the plugin without pytest between."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import pytest

from neonctl_async import NeonClient
from neonctl_local import Durations, LocalControlPlane
from pytest_neonctl_async import ControlPlane
from pytest_neonctl_async.backend import Backend
from pytest_neonctl_async.background_loop import BackgroundLoop, run_background_loop
from pytest_neonctl_async.cloud import CloudAccount
from pytest_neonctl_async.local import open_local
from pytest_neonctl_async.migrations import Preparation
from pytest_neonctl_async.once import LocalClaims, perform_once
from pytest_neonctl_async.server import ControlServer
from pytest_neonctl_async.server_process import ServerURLs

RunSuite: TypeAlias = Callable[..., pytest.RunResult]

UNUSED_PLUGINS = ("randomly", "hypothesispytest", "pytest_postgresql", "valkey")
"""Plugins that these suites do not use. A suite starts in half the time without them."""

NO_MIGRATIONS = Preparation(None, partial(perform_once, LocalClaims()))


@pytest.fixture
def run_suite(pytester: pytest.Pytester) -> RunSuite:
    """Runs the test files of ``pytester``, with warnings as errors, in the order of definition."""
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")

    def run(*options: str) -> pytest.RunResult:
        without = (word for name in UNUSED_PLUGINS for word in ("-p", f"no:{name}"))
        return pytester.runpytest_subprocess("-W", "error", *without, *options)

    return run


@pytest.fixture
async def project_id(
    control_plane: LocalControlPlane, neon: NeonClient, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The project that the tests run in. The local control plane takes the part of Neon."""
    project_id = (await neon.projects.create(name="tests", wait=True)).project.id
    monkeypatch.setenv("NEON_API_HOST", control_plane.base_url)
    monkeypatch.setenv("NEON_API_KEY", control_plane.api_key)
    monkeypatch.setenv("NEON_PROJECT_ID", project_id)
    return project_id


@pytest.fixture
def server_loop() -> Iterator[BackgroundLoop]:
    with run_background_loop() as loop:
        yield loop


@pytest.fixture
def server(server_loop: BackgroundLoop) -> Iterator[LocalControlPlane]:
    durations = Durations(default=0.01)
    with server_loop.enter(LocalControlPlane(durations=durations)) as server:
        yield server


@pytest.fixture
def urls(server_loop: BackgroundLoop, server: LocalControlPlane) -> Iterator[ServerURLs]:
    control = ControlServer(server)
    server_loop.call(control.start())
    yield ServerURLs(server.base_url, control.url, control.token)
    server_loop.call(control.stop())


@pytest.fixture
def backend(urls: ServerURLs) -> Iterator[Backend]:
    with open_local(urls, "0a0a0a0a", NO_MIGRATIONS, postgres=False) as backend:
        yield backend


@pytest.fixture
def neon_control_plane(backend: Backend) -> ControlPlane:
    assert backend.control_plane is not None
    return backend.control_plane


@pytest.fixture
def account(server_loop: BackgroundLoop, server: LocalControlPlane) -> CloudAccount:
    """An account for ``--neon-cloud``, where a local control plane takes the part of Neon."""
    environment = {
        "NEON_API_KEY": server.api_key,
        "NEON_API_HOST": server.base_url,
        "NEON_PROJECT_ID": server_loop.call(create_project(server)),
    }
    return CloudAccount(environment)


async def create_project(server: LocalControlPlane) -> str:
    async with NeonClient(server.api_key, base_url=server.base_url) as neon:
        return (await neon.projects.create(name="tests", wait=True)).project.id
