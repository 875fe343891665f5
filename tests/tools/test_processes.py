"""The processes of the machine, without which a campaign of kills would find nothing."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tools.processes import Process, running_in, tree

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc"),
]
SLEEP = "import time; print(flush=True); time.sleep(60)"


@pytest.fixture
async def child(tmp_path: Path) -> AsyncGenerator[int]:
    """The id of a child process that works in ``tmp_path``."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", SLEEP), stdout=asyncio.subprocess.PIPE, cwd=tmp_path
    )
    assert process.stdout is not None
    await process.stdout.readline()
    yield process.pid
    process.kill()
    await process.communicate()


def by_id(processes: list[Process], pid: int) -> Process | None:
    return next((process for process in processes if process.pid == pid), None)


def test_tree_contains_the_process_and_its_child(child: int) -> None:
    processes = tree(os.getpid())
    assert by_id(processes, os.getpid())
    found = by_id(processes, child)
    assert found is not None
    assert found.parent == os.getpid()
    assert SLEEP in found.command


def test_process_is_found_by_its_working_directory(child: int, tmp_path: Path) -> None:
    assert [process.pid for process in running_in(tmp_path)] == [child]
    assert running_in(tmp_path / "other") == []
