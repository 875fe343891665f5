"""The options, hooks and fixtures of the pytest plugin."""

import os
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import pytest

from pytest_neonctl_async.once import (
    NOT_PREPARED,
    Claims,
    LocalClaims,
    PreparationError,
    perform_once,
)
from pytest_neonctl_async.options import (
    Postgres,
    add_options,
    default_loop_scope,
    django_option,
    operation_seconds,
    postgres_argument,
    postgres_option,
    postgres_source,
    rebuilds_option,
)
from pytest_neonctl_async.server_process import ServerProcess, ServerURLs

if TYPE_CHECKING:
    from concurrent.futures import Future

    from neonctl_async import NeonClient
    from neonctl_async.types import BranchCreated, Project
    from pytest_neonctl_async.address import AddressServer
    from pytest_neonctl_async.backend import Backend, BranchFactory
    from pytest_neonctl_async.cloud import CloudAccount
    from pytest_neonctl_async.control_plane import ControlPlane
    from pytest_neonctl_async.migrations import Migrate

_RUN = pytest.StashKey["Run"]()
_SERVER_PROCESS = pytest.StashKey[ServerProcess]()  # only in the main process
_CLAIMS = pytest.StashKey[list[LocalClaims]]()  # only in the main process
_ADDRESS_SERVER: "pytest.StashKey[AddressServer]" = pytest.StashKey()
_BACKEND = pytest.StashKey["Backend"]()
_CLOUD_ACCOUNT: "pytest.StashKey[CloudAccount]" = pytest.StashKey()
_SUMMARY_LINES = pytest.StashKey[list[str]]()
_WORKER_INPUT = "neonctl_async"
_THIS: Final = "neonctl-async"
_PYTEST_NEON: Final = "neon"
_PACKAGES: Final = {_THIS: "neonctl-async", _PYTEST_NEON: "pytest-neon"}
"""The packages of the plugins, by plugin name."""
_KEPT = "the databases of failed tests exist for an hour: kill {} deletes them"
_NO_SERVER = (
    "the fixtures of neonctl-async need the package neonctl-local: "
    "pip install 'neonctl-async[testing]'"
)


class Run(NamedTuple):
    """The part of a test run that its main process and its workers share."""

    run_id: str
    get_urls: Callable[[str | None], ServerURLs]
    claims: Claims


class _Worker(Protocol):
    """A worker of pytest-xdist, as the main process sees it."""

    config: pytest.Config
    workerinput: dict[str, object]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and settings of the plugin."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Check the options and prepare the run, without starting the local control plane."""
    if config.getoption("neon_cloud"):
        from pytest_neonctl_async.cloud import CloudAccount

        try:
            config.stash[_CLOUD_ACCOUNT] = CloudAccount(os.environ)
        except ValueError as error:
            raise pytest.UsageError(str(error)) from None
    else:
        postgres_argument(postgres_option(config))
    keeps_failed = bool(config.getoption("neon_keep_failed"))
    if keeps_failed and _CLOUD_ACCOUNT in config.stash:
        raise pytest.UsageError("--neon-keep-failed keeps local databases: leave out --neon-cloud")
    shared: tuple[str, int, str] | None = getattr(config, "workerinput", {}).get(_WORKER_INPUT)
    if shared is None:
        config.stash[_SERVER_PROCESS] = process = ServerProcess(
            operation_seconds(config), keeps_failed=keeps_failed
        )
        claims = LocalClaims()
        config.stash[_CLAIMS] = [claims]
        config.stash[_RUN] = Run(os.urandom(4).hex(), process.urls, claims)
    else:
        from pytest_neonctl_async.address import RemoteClaims, ServerAddress, fetch_urls

        run_id, port, token = shared
        address = ServerAddress(port, token)
        config.stash[_RUN] = Run(run_id, partial(fetch_urls, address), RemoteClaims(address))
    if default_loop_scope(config) is not None:
        config.pluginmanager.import_plugin("pytest_neonctl_async.with_asyncio")
    if django_option(config):
        config.pluginmanager.import_plugin("pytest_neonctl_async.with_django")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: "_Worker") -> None:
    """Pass the run id and the address of the main process to a pytest-xdist worker."""
    from pytest_neonctl_async import address

    stash = node.config.stash
    run = stash[_RUN]
    if _ADDRESS_SERVER not in stash:
        assert isinstance(run.claims, LocalClaims), "only the main process has workers"
        stash[_ADDRESS_SERVER] = address.AddressServer(run.get_urls, run.claims)
    node.workerinput[_WORKER_INPUT] = (run.run_id, *stash[_ADDRESS_SERVER].address)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Reset the local control plane after all fixtures of a test have been torn down."""
    try:
        return (yield)
    finally:
        backend = item.config.stash.get(_BACKEND, None)
        if backend is not None:  # after every test: getfixturevalue() leaves no trace in the item
            backend.reset()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shorten the report of each test whose databases could not be prepared.

    With ``--neon-keep-failed``, keep a failed test's databases before its fixtures are torn down.
    """
    original = call.excinfo
    if original is None or not isinstance(original.value, PreparationError):
        report = yield
        if report.failed and call.when != "teardown" and item.config.getoption("neon_keep_failed"):
            from pytest_neonctl_async.failed import keep_databases

            lines = keep_databases(item, item.config.stash.get(_BACKEND, None))
            report.sections += [("databases of the failed test", "\n".join(lines))] if lines else []
        return report
    # pytest would format the traceback of the migrations for each test.
    text = original.value.report(show_locals=bool(item.config.getoption("showlocals")))
    with pytest.raises(pytest.fail.Exception) as failure:
        pytest.fail(text, pytrace=False)
    call.excinfo = failure
    try:
        report = yield
    finally:
        call.excinfo = original  # for a debugger
    # pytest cuts the message to the width of the terminal, so it starts with the cause.
    if (crash := getattr(report.longrepr, "reprcrash", None)) is not None:
        crash.message = str(original.value).removeprefix(NOT_PREPARED)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Stop the local control plane. Delete the branches that killed workers left on Neon."""
    try:
        return (yield)
    finally:
        stash = session.config.stash
        if _SERVER_PROCESS in stash:
            reports = dict.fromkeys(claims.report for claims in stash[_CLAIMS])
            if _ADDRESS_SERVER in stash:
                stash[_ADDRESS_SERVER].close()
            kept_by = stash[_SERVER_PROCESS].close()
            kept = None if kept_by is None else _KEPT.format(kept_by)
            stash[_SUMMARY_LINES] = [line for line in (kept, *reports) if line is not None]
            _sweep(session.config)


def _sweep(config: pytest.Config) -> None:
    account = config.stash.get(_CLOUD_ACCOUNT, None)
    if account is not None and not config.getoption("collectonly"):
        from pytest_neonctl_async.cloud import sweep

        config.stash[_SUMMARY_LINES] += sweep(account, config.stash[_RUN].run_id)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Report pytest-neon if it is installed too, because one ``neon_branch`` replaces the other."""
    plugins = dict(config.pluginmanager.list_name_plugin())
    if not getattr(plugins.get(_PYTEST_NEON), "__name__", "").startswith("pytest_neon."):
        return []
    # The fixture of the plugin that was registered last wins.
    *_, other, winner = (name for name in plugins if name in {_PYTEST_NEON, _THIS})
    line = (
        f"neon: the fixture neon_branch is that of {_PACKAGES[winner]}, and replaces the one of "
        f"{_PACKAGES[other]}: -p no:{winner} selects the other"
    )
    return [line]


def pytest_terminal_summary(terminalreporter: "pytest.TerminalReporter") -> None:
    """Report migrations that failed or were not cached, kept databases, and what the sweep did.

    Everywhere else, the cause of failed migrations is cut to the width of the terminal.
    """
    no_lines: list[str] = []
    for line in terminalreporter.config.stash.get(_SUMMARY_LINES, no_lines):
        terminalreporter.write_line(f"neon: {line}")


@pytest.fixture(scope="session")
def neon_postgres(request: pytest.FixtureRequest) -> Postgres:
    """The ``neon_postgres`` setting: True if branches of the local control plane are databases.

    You can override this fixture in the topmost ``conftest.py``. Return True, False, or the
    directory of the Postgres programs.
    """
    return postgres_option(request.config)


@pytest.fixture(scope="session")
def neon_migrations() -> "Migrate":
    """The function that prepares the database that all branches are copies of.

    Override this fixture to return a function or coroutine function that takes a ``ConnectionUri``.
    It runs once per test run, whatever the number of pytest-xdist workers. Wrap it in
    :class:`~pytest_neonctl_async.CachedMigrations`, and later test runs use its result. By default,
    the database is empty.
    """
    from pytest_neonctl_async.migrations import no_migrations

    return no_migrations


@pytest.fixture(scope="session")
def _neon_urls(
    request: pytest.FixtureRequest, neon_postgres: Postgres
) -> "Generator[Future[ServerURLs] | None, None, None]":
    """The URLs of the local control plane. It starts while this process imports the client."""
    if find_spec("neonctl_local") is None:
        pytest.fail(_NO_SERVER, pytrace=False)
    stash = request.config.stash
    if _CLOUD_ACCOUNT in stash:
        yield None
        return
    postgres = postgres_argument(neon_postgres)
    with ThreadPoolExecutor(1) as executor:
        yield executor.submit(stash[_RUN].get_urls, postgres)


@pytest.fixture(scope="session")
def _neon_claims(request: pytest.FixtureRequest, neon_migrations: object) -> Claims:
    """The claims of all workers. Without workers, those of one set-up of ``neon_migrations``.

    pytest sets it up again for other parameters of the fixtures that it depends on.
    """
    del neon_migrations
    stash = request.config.stash
    if _CLAIMS not in stash:
        return stash[_RUN].claims
    stash[_CLAIMS].append(claims := LocalClaims(is_alone=True))
    return claims


@pytest.fixture(scope="session")
def _neon_backend(
    request: pytest.FixtureRequest,
    neon_postgres: Postgres,
    _neon_urls: "Future[ServerURLs] | None",
    neon_migrations: object,
    _neon_claims: Claims,
) -> "Generator[Backend, None, None]":
    from pytest_neonctl_async.cloud import open_cloud
    from pytest_neonctl_async.local import open_local
    from pytest_neonctl_async.migrations import Preparation

    stash = request.config.stash
    run_id = stash[_RUN].run_id
    is_local = _neon_urls is not None
    postgres = postgres_argument(neon_postgres) if is_local else None
    migrate = _migrate(neon_migrations, has_databases=not is_local or postgres is not None)
    preparation = Preparation(
        migrate,
        partial(perform_once, _neon_claims),
        _key(neon_migrations, request.config) if is_local else None,
        rebuilds=rebuilds_option(request.config),
        is_alone=isinstance(_neon_claims, LocalClaims),
    )
    if _neon_urls is None:
        opened = open_cloud(stash[_CLOUD_ACCOUNT], run_id, preparation)
    else:
        urls = _started(_neon_urls, neon_postgres, request.config)
        opened = open_local(urls, run_id, preparation, postgres=postgres is not None)
    with opened as backend:
        stash[_BACKEND] = backend
        yield backend
        del stash[_BACKEND]


def _started(urls: "Future[ServerURLs]", postgres: Postgres, config: pytest.Config) -> ServerURLs:
    try:
        return urls.result()
    except RuntimeError as error:
        problem = str(error)
    if (file := postgres_source(config)) and postgres == postgres_option(config):
        problem += f"\nneon_postgres is set in {file}"
    pytest.fail(problem, pytrace=False)  # outside of except, so that only the text is shown


def _migrate(value: object, *, has_databases: bool) -> "Migrate | None":
    from pytest_neonctl_async.migrations import check_migrations

    try:
        return check_migrations(value, has_databases=has_databases)
    except (RuntimeError, TypeError) as error:
        problem = str(error)
    pytest.fail(problem, pytrace=False)  # outside of except, so that only the text is shown


def _key(migrations: object, config: pytest.Config) -> str | None:
    from pytest_neonctl_async.migrations import CachedMigrations, migration_key

    if not isinstance(migrations, CachedMigrations):
        return None
    try:
        return migration_key(migrations, config.rootpath)
    except OSError as error:
        problem = str(error)
    pytest.fail(problem, pytrace=False)  # outside of except, so that only the text is shown


@pytest.fixture(scope="session")
def neon_control_plane(_neon_backend: "Backend") -> "ControlPlane":
    """The local control plane, for example to plan faults. It is reset after each test.

    It is started once per test run. Each pytest-xdist worker is a separate tenant of it. With
    ``--neon-cloud``, tests with this fixture are skipped.
    """
    if _neon_backend.control_plane is None:
        pytest.skip("needs the local control plane, which --neon-cloud turns off")
    return _neon_backend.control_plane


@pytest.fixture
def neon_client(request: pytest.FixtureRequest) -> "NeonClient":
    """A ``NeonClient`` on the test's event loop, with pytest-asyncio or anyio's plugin."""
    marker = request.node.get_closest_marker("asyncio")  # pytest-asyncio adds it in auto mode
    default_scope = default_loop_scope(request.config)
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
    """A new project for the test or, with ``--neon-cloud``, the project in ``NEON_PROJECT_ID``."""
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
