"""What every test runs under: no leaks, no blocked loop, no key in the environment."""

import asyncio
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import settings

from neonctl_async.testing import FakeClockLoop

settings.register_profile("default", deadline=None)
settings.load_profile("default")


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Tests marked ``virtual_time`` run on a clock that jumps."""
    if item.get_closest_marker("virtual_time"):
        return {"fake": FakeClockLoop}
    return {"real": asyncio.new_event_loop}


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NEON_API_KEY", "NEON_API_HOST", "NEON_PROJECT_ID", "NEON_ORG_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def process_needs_its_marker(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Have a test fail that starts a process and lacks the marker: ``make hostile`` runs by it."""

    def refuse(*_arguments: object, **_options: object) -> None:
        raise AssertionError("this test starts a process: mark it with pytest.mark.process")

    if not any(map(request.node.get_closest_marker, ("process", "contract", "release"))):
        monkeypatch.setattr(subprocess.Popen, "__init__", refuse)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Have processes that the test starts react to SIGINT.

    Shells start background jobs with SIGINT ignored, and processes inherit that. A signal that has
    a handler is reset to its default action in a new process.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def blocked_loop_fails() -> Iterator[None]:
    with blockbuster_ctx() as blockbuster:
        for name, function in blockbuster.functions.items():
            if name.startswith("sqlite3."):  # a database in memory waits for nothing
                function.can_block_in("neonctl_async/local/storage/database.py", "_submit")
        yield


@pytest.fixture(autouse=True)
async def no_task_left(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    await asyncio.sleep(0)
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not left, f"{request.node.name} left tasks behind: {left}"
