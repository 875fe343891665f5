"""A pytest plugin: the options of the suite, and the time from a test's setup to its first query.

``--tests`` is the number of tests, ``--rows`` the size of the table that each finds.
``--server-port`` is the port of the server that peers use. The times are appended to the file
``--times``, a line per test.
"""

import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

_START = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    parser.addoption("--tests", type=int, default=1)
    parser.addoption("--rows", type=int, default=100)
    parser.addoption("--server-port", type=int, default=0)
    parser.addoption("--times", type=Path)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat the test."""
    metafunc.parametrize("number", range(metafunc.config.option.tests))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Record the start of the setup of a test."""
    item.stash[_START] = time.perf_counter()
    yield


@pytest.fixture
def first_query_done(request: pytest.FixtureRequest) -> Callable[[], None]:
    """A function that a test calls after its first query."""

    def record() -> None:
        duration = time.perf_counter() - request.node.stash[_START]
        with Path(request.config.option.times).open("a", encoding="ascii") as times:
            times.write(f"{duration}\n")

    return record


@pytest.fixture(scope="session")
def rows(request: pytest.FixtureRequest) -> int:
    """The number of rows."""
    return int(request.config.option.rows)


@pytest.fixture(scope="session")
def server_port(request: pytest.FixtureRequest) -> int:
    """The port of the server of the peers."""
    return int(request.config.option.server_port)
