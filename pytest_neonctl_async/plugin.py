"""Options, hooks and fixtures."""

import os
from collections.abc import AsyncGenerator, Generator
from typing import TYPE_CHECKING, Protocol

import pytest

from pytest_neonctl_async.server_process import CloudAccount, ServerProcess, ServerSource

if TYPE_CHECKING:
    from neonctl_async import NeonClient
    from neonctl_async.testing import BranchFactory, ControlPlane
    from neonctl_async.testing.plugin.backends import Backend
    from neonctl_async.types import BranchCreated, Project
    from pytest_neonctl_async.address import AddressServer

_SERVER = pytest.StashKey[ServerSource]()
_ADDRESS_SERVER: "pytest.StashKey[AddressServer]" = pytest.StashKey()
_RUN = pytest.StashKey[str]()
_BACKEND = pytest.StashKey["Backend"]()
_CLOUD_ACCOUNT = pytest.StashKey[CloudAccount]()
_SWEPT = pytest.StashKey[list[str]]()
_WORKER_INPUT = "neonctl_async"


class _Worker(Protocol):
    """A worker of pytest-xdist, seen from the main process."""

    config: pytest.Config
    workerinput: dict[str, object]


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--neon-cloud``, and how long operations take otherwise."""
    parser.getgroup("neon", "Neon, or a local control plane in its place").addoption(
        "--neon-cloud",
        action="store_true",
        help="run on the platform, in the project NEON_PROJECT_ID, with the key NEON_API_KEY",
    )
    parser.addini(
        "neon_operation_seconds",
        "how long an operation of the local control plane takes, in seconds",
        default="0.005",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Check the options; nothing is started yet."""
    if config.getoption("neon_cloud"):
        missing = [name for name in CloudAccount.NEEDED if not os.environ.get(name)]
        if missing:
            raise pytest.UsageError(f"--neon-cloud needs {' and '.join(missing)} to be set")
        config.stash[_CLOUD_ACCOUNT] = CloudAccount(os.environ)
    told: tuple[str, int, str] | None = getattr(config, "workerinput", {}).get(_WORKER_INPUT)
    if told is None:
        config.stash[_RUN] = os.urandom(4).hex()
        config.stash[_SERVER] = ServerProcess(_operation_seconds(config))
    else:
        from pytest_neonctl_async.address import PlaneAddress, WorkerClient

        config.stash[_RUN], port, token = told
        config.stash[_SERVER] = WorkerClient(PlaneAddress(port, token))
    if _default_loop_scope(config) is not None:
        config.pluginmanager.import_plugin("pytest_neonctl_async.with_asyncio")


def _operation_seconds(config: pytest.Config) -> float:
    text = config.getini("neon_operation_seconds")
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise pytest.UsageError(f"neon_operation_seconds is {text!r}: expected seconds, 0 or more")
    return seconds


def _default_loop_scope(config: pytest.Config) -> str | None:
    """On which loop pytest-asyncio runs a test; None without it, or one that has no such choice."""
    try:
        scope: str = config.getini("asyncio_default_test_loop_scope")
    except ValueError:
        return None
    return scope


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: "_Worker") -> None:
    """Tell a worker of pytest-xdist where to ask for the control plane."""
    from pytest_neonctl_async import address

    stash = node.config.stash
    if _ADDRESS_SERVER not in stash:
        stash[_ADDRESS_SERVER] = address.AddressServer(stash[_SERVER].plane)
    node.workerinput[_WORKER_INPUT] = (stash[_RUN], *stash[_ADDRESS_SERVER].address)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Clear the control plane once all fixtures of a test are done with it."""
    try:
        return (yield)
    finally:
        backend = item.config.stash.get(_BACKEND, None)
        if backend is not None:  # whatever the test is: it may have asked for fixtures by name
            backend.clear()


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Sweep what workers that were killed have left on the platform, and end the process."""
    try:
        return (yield)
    finally:
        server = session.config.stash.get(_SERVER, None)
        if isinstance(server, ServerProcess):
            if _ADDRESS_SERVER in session.config.stash:
                session.config.stash[_ADDRESS_SERVER].close()
            server.close()
            _sweep(session.config)


def _sweep(config: pytest.Config) -> None:
    platform = config.stash.get(_CLOUD_ACCOUNT, None)
    if platform is not None and not config.getoption("collectonly"):
        from neonctl_async.testing.plugin.sweep import sweep_now

        config.stash[_SWEPT] = sweep_now(platform, config.stash[_RUN])


def pytest_terminal_summary(terminalreporter: "pytest.TerminalReporter") -> None:
    """Tell what was swept."""
    no_lines: list[str] = []
    for line in terminalreporter.config.stash.get(_SWEPT, no_lines):
        terminalreporter.write_line(f"neon: {line}")


@pytest.fixture(scope="session")
def _neon_backend(request: pytest.FixtureRequest) -> "Generator[Backend, None, None]":
    from neonctl_async.testing.plugin.backends import open_cloud_backend, open_local_backend

    config = request.config
    run = config.stash[_RUN]
    if _CLOUD_ACCOUNT in config.stash:
        opened = open_cloud_backend(config.stash[_CLOUD_ACCOUNT], run)
    else:
        opened = open_local_backend(config.stash[_SERVER].plane(), run)
    with opened as backend:
        config.stash[_BACKEND] = backend
        yield backend
        del config.stash[_BACKEND]


@pytest.fixture(scope="session")
def neon_control_plane(_neon_backend: "Backend") -> "ControlPlane":
    """The local control plane, cleared after each test. A test that plans faults asks for it.

    Started once for a test run; workers of pytest-xdist share it, each as a tenant of its own.
    With ``--neon-cloud`` there is none, and such tests are skipped.
    """
    if _neon_backend.control_plane is None:
        pytest.skip("it needs the local control plane, and --neon-cloud is given")
    return _neon_backend.control_plane


@pytest.fixture
def neon_client(request: pytest.FixtureRequest) -> "NeonClient":
    """A ``NeonClient`` on the event loop of the test: pytest-asyncio's, or anyio's runner's."""
    marker = request.node.get_closest_marker("asyncio")  # in auto mode, pytest-asyncio sets it
    default_loop_scope = _default_loop_scope(request.config)
    if marker is None and "anyio_backend" in request.fixturenames:
        name = "_neon_client_for_anyio"
    elif default_loop_scope is not None:
        asked = marker.kwargs.get("loop_scope") or marker.kwargs.get("scope") if marker else None
        name = f"_neon_client_on_{asked or default_loop_scope}_loop"
    else:
        pytest.fail(
            "neon_client needs an event loop: install pytest-asyncio 0.26 or later, or mark the "
            "test with pytest.mark.anyio",
            pytrace=False,
        )
    client: NeonClient = request.getfixturevalue(name)
    return client


@pytest.fixture
async def _neon_client_for_anyio(_neon_backend: "Backend") -> "AsyncGenerator[NeonClient]":
    async with _neon_backend.client() as neon:
        yield neon


@pytest.fixture
def neon_project(_neon_backend: "Backend") -> "Project":
    """A project of its own for a test; on the platform the one that ``NEON_PROJECT_ID`` names."""
    return _neon_backend.project()


@pytest.fixture
def neon_branch_factory(
    _neon_backend: "Backend", neon_project: "Project"
) -> "Generator[BranchFactory, None, None]":
    """Makes branches of ``neon_project`` that are gone after the test."""
    with _neon_backend.branches(neon_project.id) as factory:
        yield factory


@pytest.fixture
def neon_branch(neon_branch_factory: "BranchFactory") -> "BranchCreated":
    """A branch of its own for a test: ready, with a compute, and gone after the test."""
    return neon_branch_factory.create()
