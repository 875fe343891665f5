"""Rules for every test: no task is left, no call blocks the loop, no key is in the environment."""

import asyncio
import gc
import importlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from blockbuster import BlockBusterFunction, blockbuster_ctx
from coverage import Coverage
from hypothesis import settings
from hypothesis.database import InMemoryExampleDatabase

from neonctl_async import NeonClient
from neonctl_async.testing import FakeClockLoop, loop_clock
from neonctl_local import Durations, LocalControlPlane
from tests.support.fake_neon import FakeNeon

LoopFactory: TypeAlias = Callable[[], asyncio.AbstractEventLoop]

settings.register_profile("thorough", deadline=None)
settings.register_profile("default", deadline=None, max_examples=30)
settings.register_profile(
    "read-only", settings.get_profile("default"), database=InMemoryExampleDatabase()
)
settings.load_profile("default" if os.access(Path(__file__).parents[1], os.W_OK) else "read-only")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--loop",
        choices=["asyncio", "uvloop", "eager"],
        default="asyncio",
        help="run tests on uvloop, or with the eager task factory of Python 3.12",
    )


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, LoopFactory]:
    """Run tests on the loop of ``--loop``, or on a fake clock if marked ``virtual_time``."""
    loop = str(config.getoption("--loop", default="asyncio"))
    factory: LoopFactory = asyncio.new_event_loop
    if item.get_closest_marker("virtual_time"):
        factory = FakeClockLoop
    elif loop == "uvloop":
        factory = importlib.import_module("uvloop").new_event_loop
    return {loop: eager(factory) if loop == "eager" else factory}


def eager(factory: LoopFactory) -> LoopFactory:
    """Make loops whose tasks run at once, up to their first wait."""
    if sys.version_info < (3, 12):
        raise pytest.UsageError("--loop eager needs Python 3.12")

    def make() -> asyncio.AbstractEventLoop:
        loop = factory()
        loop.set_task_factory(asyncio.eager_task_factory)
        return loop

    return make


def pytest_collection_finish() -> None:
    """Leave the collected tests and the imported modules out of all collections of garbage."""
    gc.freeze()


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_KEY", "API_HOST", "PROJECT_ID", "ORG_ID", "RATE_BUDGET"):
        monkeypatch.delenv(f"NEON_{name}", raising=False)


@pytest.fixture(autouse=True)
def refuse_unmarked_processes(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Make tests fail that start a process without the marker that ``make hostile`` selects."""

    def refuse(*_arguments: object, **_options: object) -> None:
        raise AssertionError("this test starts a process: mark it with pytest.mark.process")

    allowed = ("process", "postgres", "conformance", "contract", "browser", "release")
    if not any(map(request.node.get_closest_marker, allowed)):
        monkeypatch.setattr(subprocess.Popen, "__init__", refuse)


@pytest.fixture
async def fake_neon() -> AsyncIterator[FakeNeon]:
    """A fake API that runs until the end of the test."""
    async with FakeNeon() as fake_neon, fake_neon.client:
        yield fake_neon


@pytest.fixture
async def control_plane(request: pytest.FixtureRequest) -> AsyncIterator[LocalControlPlane]:
    """A local control plane, on the clock of a test with virtual time.

    The marker ``control_plane`` has further settings. By default, operations take 0.05 seconds.
    """
    settings: dict[str, Any] = {"durations": Durations(default=0.05)}
    if request.node.get_closest_marker("virtual_time"):
        settings["clock"] = loop_clock()
    if marker := request.node.get_closest_marker("control_plane"):
        settings |= marker.kwargs
    async with LocalControlPlane(**settings) as control_plane:
        yield control_plane


@pytest.fixture
async def neon(control_plane: LocalControlPlane) -> AsyncIterator[NeonClient]:
    """A client of the local control plane."""
    async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
        yield neon


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let processes that the test starts react to SIGINT.

    Shells start background jobs with SIGINT ignored, and processes inherit this. A signal that has
    a handler is reset to its default action in a new process.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True, scope="module")
def fail_on_blocked_loop() -> Iterator[None]:
    with blockbuster_ctx() as blockbuster:
        for name, function in blockbuster.functions.items():
            # Hypothesis reads modules that are new when a test draws a value, also on the loop.
            function.can_block_in("conjecture/providers.py", "_get_local_constants")
            if name.startswith("sqlite3."):  # a database in memory does not wait for a disk
                function.can_block_in("neonctl_local/storage/database.py", "_submit")
                function.can_block_in("tests/transport/shared/clients.py", "_in_memory")
        acquire = blockbuster.functions["threading.Lock.acquire"]
        acquire.can_block_in("neonctl_local/server/blocked_loop.py", "close")  # the thread ends
        let_coverage_block(acquire)
        yield


def let_coverage_block(acquire: BlockBusterFunction) -> None:
    """Let the tracer take its lock, which threads of the proxy and of copies share with the loop.

    The tracer calls the lock itself, so no function on the stack shows who waits for it.
    """
    may_block = acquire.can_block_predicate

    def may_wait(lock: object, *args: object, **options: object) -> bool:
        return may_block(lock, *args, **options) or lock is lock_of_coverage()

    acquire.deactivate()
    acquire.can_block_predicate = may_wait
    acquire.activate()


def lock_of_coverage() -> object:
    """Return the lock of the running measurement, or None."""
    measurement = Coverage.current()
    collector = getattr(measurement, "_collector", None)
    return getattr(collector, "data_lock", None)


@pytest.fixture(autouse=True)
def fail_on_leftover_task(request: pytest.FixtureRequest) -> None:
    """Check the tests that run on a loop. The others need none, and making one takes time."""
    if request.node.get_closest_marker("asyncio"):
        request.getfixturevalue("no_task_is_left")


@pytest.fixture
async def no_task_is_left(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    await asyncio.sleep(0)
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not left, f"{request.node.name} left tasks behind: {left}"
