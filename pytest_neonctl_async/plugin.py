"""Options, hooks and fixtures."""

import os
from collections.abc import AsyncGenerator, Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Protocol

import pytest

from pytest_neonctl_async.server_process import ServerProcess
from pytest_neonctl_async.targets import CloudAccount, ServerURLs

if TYPE_CHECKING:
    from neonctl_async import NeonClient
    from neonctl_async.testing import BranchFactory, ControlPlane
    from neonctl_async.testing.plugin.backends import Backend
    from neonctl_async.types import BranchCreated, Project
    from pytest_neonctl_async.address import AddressServer

_RUN_ID = pytest.StashKey[str]()
_GET_URLS = pytest.StashKey[Callable[[], ServerURLs]]()
_SERVER_PROCESS = pytest.StashKey[ServerProcess]()  # only in the main process
_ADDRESS_SERVER: "pytest.StashKey[AddressServer]" = pytest.StashKey()
_BACKEND = pytest.StashKey["Backend"]()
_CLOUD_ACCOUNT = pytest.StashKey[CloudAccount]()
_SWEEP_LINES = pytest.StashKey[list[str]]()
_WORKER_INPUT = "neonctl_async"


class _Worker(Protocol):
    """A worker of pytest-xdist, as the main process sees it."""

    config: pytest.Config
    workerinput: dict[str, object]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--neon-cloud`` and ``neon_operation_seconds``."""
    parser.getgroup("neon", "Neon, or a local control plane in its place").addoption(
        "--neon-cloud",
        action="store_true",
        help="run at Neon, in the project NEON_PROJECT_ID, with the key NEON_API_KEY",
    )
    parser.addini(
        "neon_operation_seconds",
        "duration of an operation of the local control plane, in seconds",
        default="0.005",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Check the options. The local control plane is not started yet."""
    if config.getoption("neon_cloud"):
        try:
            config.stash[_CLOUD_ACCOUNT] = CloudAccount(os.environ)
        except ValueError as error:
            raise pytest.UsageError(str(error)) from None
    shared: tuple[str, int, str] | None = getattr(config, "workerinput", {}).get(_WORKER_INPUT)
    if shared is None:
        config.stash[_RUN_ID] = os.urandom(4).hex()
        config.stash[_SERVER_PROCESS] = process = ServerProcess(_operation_seconds(config))
        get_urls: Callable[[], ServerURLs] = process.urls
    else:
        from pytest_neonctl_async.address import ServerAddress, fetch_urls

        config.stash[_RUN_ID], port, token = shared
        get_urls = partial(fetch_urls, ServerAddress(port, token))
    config.stash[_GET_URLS] = get_urls
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
    """Return pytest-asyncio's default loop scope of tests, or None if it has no such setting."""
    try:
        scope: str = config.getini("asyncio_default_test_loop_scope")
    except ValueError:
        return None
    return scope


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: "_Worker") -> None:
    """Pass the address server to a worker of pytest-xdist."""
    from pytest_neonctl_async import address

    stash = node.config.stash
    if _ADDRESS_SERVER not in stash:
        stash[_ADDRESS_SERVER] = address.AddressServer(stash[_GET_URLS])
    node.workerinput[_WORKER_INPUT] = (stash[_RUN_ID], *stash[_ADDRESS_SERVER].address)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Reset the local control plane after the teardown of all fixtures of a test."""
    try:
        return (yield)
    finally:
        backend = item.config.stash.get(_BACKEND, None)
        if backend is not None:  # after every test: getfixturevalue() leaves no trace in the item
            backend.reset()


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Stop the local control plane. Delete the branches that killed workers left at Neon."""
    try:
        return (yield)
    finally:
        stash = session.config.stash
        if _SERVER_PROCESS in stash:
            if _ADDRESS_SERVER in stash:
                stash[_ADDRESS_SERVER].close()
            stash[_SERVER_PROCESS].close()
            _sweep(session.config)


def _sweep(config: pytest.Config) -> None:
    account = config.stash.get(_CLOUD_ACCOUNT, None)
    if account is not None and not config.getoption("collectonly"):
        from neonctl_async.testing.plugin.cloud import sweep

        config.stash[_SWEEP_LINES] = sweep(account, config.stash[_RUN_ID])


def pytest_terminal_summary(terminalreporter: "pytest.TerminalReporter") -> None:
    """Report the branches that the sweep deleted, and its failures."""
    no_lines: list[str] = []
    for line in terminalreporter.config.stash.get(_SWEEP_LINES, no_lines):
        terminalreporter.write_line(f"neon: {line}")


@pytest.fixture(scope="session")
def _neon_backend(request: pytest.FixtureRequest) -> "Generator[Backend, None, None]":
    from neonctl_async.testing.plugin.backends import open_cloud_backend, open_local_backend

    stash = request.config.stash
    run_id = stash[_RUN_ID]
    if _CLOUD_ACCOUNT in stash:
        opened = open_cloud_backend(stash[_CLOUD_ACCOUNT], run_id)
    else:
        opened = open_local_backend(stash[_GET_URLS](), run_id)
    with opened as backend:
        stash[_BACKEND] = backend
        yield backend
        del stash[_BACKEND]


@pytest.fixture(scope="session")
def neon_control_plane(_neon_backend: "Backend") -> "ControlPlane":
    """The local control plane, for example to plan faults. It is reset after each test.

    It is started once per test run. Each worker of pytest-xdist is a separate tenant of it. With
    ``--neon-cloud``, tests with this fixture are skipped.
    """
    if _neon_backend.control_plane is None:
        pytest.skip("needs the local control plane, which --neon-cloud turns off")
    return _neon_backend.control_plane


@pytest.fixture
def neon_client(request: pytest.FixtureRequest) -> "NeonClient":
    """A ``NeonClient`` on the event loop of the test, with pytest-asyncio or anyio's plugin."""
    marker = request.node.get_closest_marker("asyncio")  # pytest-asyncio adds it in auto mode
    default_scope = _default_loop_scope(request.config)
    if marker is None and "anyio_backend" in request.fixturenames:
        name = "_neon_client_for_anyio"
    elif default_scope is not None:
        scope = marker.kwargs.get("loop_scope") or marker.kwargs.get("scope") if marker else None
        name = f"_neon_client_on_{scope or default_scope}_loop"
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
    async with _neon_backend.new_client() as neon:
        yield neon


@pytest.fixture
def neon_project(_neon_backend: "Backend") -> "Project":
    """A new project for the test. With ``--neon-cloud``, the project in ``NEON_PROJECT_ID``."""
    return _neon_backend.project()


@pytest.fixture
def neon_branch_factory(
    _neon_backend: "Backend", neon_project: "Project"
) -> "Generator[BranchFactory, None, None]":
    """Creates branches of ``neon_project``. They are deleted after the test."""
    with _neon_backend.branches(neon_project.id) as factory:
        yield factory


@pytest.fixture
def neon_branch(neon_branch_factory: "BranchFactory") -> "BranchCreated":
    """A new branch for the test, ready and with a compute. It is deleted after the test."""
    return neon_branch_factory.create()
