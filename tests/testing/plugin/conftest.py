"""A local control plane with its control server, in a background thread as in a test run."""

from collections.abc import Iterator
from functools import partial

import pytest

from neonctl_async import NeonClient
from neonctl_async.testing import ControlPlane
from neonctl_async.testing.plugin.backends import Backend
from neonctl_async.testing.plugin.background_loop import BackgroundLoop, run_background_loop
from neonctl_async.testing.plugin.migrations import Preparation
from neonctl_async.testing.plugin.opening import open_local
from neonctl_async.testing.plugin.server import ControlServer
from neonctl_async.testing.plugin.targets import CloudAccount, ServerURLs
from neonctl_local import Durations, LocalControlPlane
from pytest_neonctl_async.once import LocalClaims, perform_once

NO_MIGRATIONS = Preparation(None, partial(perform_once, LocalClaims()))


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
def control_plane(backend: Backend) -> ControlPlane:
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
