"""The processes of the machine, and their memory."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tools.processes import Process, megabytes, running, running_in, tree

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


def test_tree_of_the_child_contains_no_other_process(child: int) -> None:
    assert [process.pid for process in tree(child)] == [child]


def test_process_is_found_by_its_working_directory(child: int, tmp_path: Path) -> None:
    assert [process.pid for process in running_in(tmp_path)] == [child]
    assert running_in(tmp_path / "other") == []


def test_memory_of_two_processes_is_the_sum(child: int) -> None:
    own = by_id(running(), os.getpid())
    found = by_id(running(), child)
    assert own is not None
    assert found is not None
    assert megabytes([own, found]) > megabytes([found]) > 1


def test_finished_process_has_no_command_and_no_memory() -> None:
    finished = Process(pid=2**30, parent=1, name="finished")
    assert finished.command == ""
    assert megabytes([finished]) == 0
    assert tree(finished.pid) == []
