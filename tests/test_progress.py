"""A wait before one's eyes."""

import asyncio
import importlib
import io
import re
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from rich.console import Console

from neonctl_async import NeonClient, Operation, OperationStatus
from neonctl_async.local import Durations, LocalControlPlane
from neonctl_async.progress import WaitProgress
from neonctl_async.testing import loop_clock
from tests.support.pages import TEXTS, code_blocks
from tests.support.records import API_KEY, operation

pytestmark = pytest.mark.virtual_time

CURSOR_HIDDEN, CURSOR_SHOWN = "\x1b[?25l", "\x1b[?25h"
RED = "\x1b[31m"


@pytest.fixture
async def control_plane() -> AsyncIterator[LocalControlPlane]:
    durations = Durations(default=7.0)
    async with LocalControlPlane(clock=loop_clock(), durations=durations) as control_plane:
        yield control_plane


@pytest.fixture
async def neon(control_plane: LocalControlPlane) -> AsyncIterator[NeonClient]:
    async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
        yield neon


@pytest.fixture
async def idle() -> AsyncIterator[NeonClient]:
    """A client for records that come from elsewhere."""
    async with NeonClient(API_KEY) as neon:
        yield neon


def a_file() -> Console:
    return Console(file=io.StringIO(), width=80)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Console:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return Console(
        file=io.StringIO(), force_terminal=True, color_system="standard", width=80, height=24
    )


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def shown(progress: WaitProgress, width: int = 80, height: int = 24) -> list[str]:
    """The lines of a frame."""
    screen = Console(file=io.StringIO(), width=width, height=height)
    screen.print(progress)
    return [line.rstrip() for line in written(screen).splitlines()]


def failed(id: str, error: str, **more: object) -> Operation:
    return msgspec.structs.replace(operation(id, "failed"), error=error, **more)


async def test_without_a_terminal_there_is_a_line_every_five_seconds_and_one_at_the_end(
    neon: NeonClient,
) -> None:
    console = a_file()
    with WaitProgress(neon, console=console) as progress:
        created = await neon.projects.create(name="p")
        await neon.operations.wait(created, on_update=progress)
    first, *_, last = written(console).splitlines()
    assert first.startswith("0 of 2 operations ended after 0:00:05, with ")
    assert first.endswith(" of 700 requests this minute: 1 running, 1 scheduling")
    assert last.startswith("2 of 2 operations ended after 0:00:1")
    assert last.endswith(": 2 finished")
    assert "\x1b" not in written(console)


async def test_without_a_terminal_nothing_is_told_of_nothing(idle: NeonClient) -> None:
    console = a_file()
    with WaitProgress(idle, console=console):
        await asyncio.sleep(60)
    assert written(console) == ""


async def test_a_terminal_shows_the_time_that_passes_between_two_records(
    idle: NeonClient, terminal: Console
) -> None:
    with WaitProgress(idle, console=terminal) as progress:
        progress(operation())
        await asyncio.sleep(2.1)
        assert "after 0:00:02" in written(terminal)
        assert "1 running" in written(terminal)


async def test_a_project_has_a_bar_of_its_own(idle: NeonClient) -> None:
    with WaitProgress(idle, console=a_file()) as progress:
        for project in ("one", "other"):
            progress(operation("op-1", "finished", project_id=project))
        progress(operation("op-2", "running", project_id="other"))
        one, other, summary, by_status = shown(progress, width=100)
    assert one.split() == ["one", "━" * 25, "1", "of", "1"]
    assert other.split()[0] == "other"
    assert other.endswith(" 1 of 2")
    assert other.count("━") < 25
    assert summary == ("2 of 3 operations ended after 0:00:00, with 0 of 700 requests this minute")
    assert by_status == "2 finished, 1 running"


async def test_the_page_on_progress_shows_what_is_shown(idle: NeonClient) -> None:
    console = a_file()
    with WaitProgress(idle, console=console) as progress:
        for project, ends in {
            "misty-wind-89243632": ["finished"] * 8,
            "silent-snow-29832645": ["finished"] * 4 + ["running"] * 4,
            "small-dream-11630550": ["finished"] * 6 + ["failed"] * 2,
        }.items():
            for number, status in enumerate(ends):
                record = operation(f"op-{number}", status, project_id=project)
                error = "quota of computes is used up" if status == "failed" else None
                progress(msgspec.structs.replace(record, error=error))
        await asyncio.sleep(11)
        frame = shown(progress, width=100)
    of_terminal, of_file = (
        re.sub(r"with \d+ of", "with 0 of", text).splitlines()
        for _, text in code_blocks(TEXTS["docs/progress.md"], "text")
    )
    assert frame == of_terminal
    assert of_file[0] in written(console).splitlines()


async def test_a_status_without_a_name_here_is_counted_as_it_came(idle: NeonClient) -> None:
    with WaitProgress(idle, console=a_file()) as progress:
        progress(operation(status="paused"))
        assert shown(progress)[-1] == "1 paused"
        progress(operation(status="finished"))
        assert shown(progress)[-1] == "1 finished"


async def test_what_two_waits_tell_of_an_operation_counts_once_and_the_newest(
    idle: NeonClient,
) -> None:
    older = operation(status="running")
    newer = msgspec.structs.replace(
        older, status=OperationStatus.FINISHED, updated_at=older.updated_at + timedelta(seconds=1)
    )
    with WaitProgress(idle, console=a_file()) as progress:
        for record in (older, newer, older, newer):
            progress(record)
        assert shown(progress)[-1] == "1 finished"


async def test_a_failure_is_told_once_however_many_have_it(idle: NeonClient) -> None:
    console = a_file()
    with WaitProgress(idle, console=console) as progress:
        for number in range(3):
            progress(failed(f"op-{number}", "no room"))
            progress(failed(f"op-{number}", "no room"))
        assert "create_branch failed in late-frost-12345678: no room (and 2 more)" in shown(
            progress
        )
    assert written(console).count("no room") == 1


async def test_failures_are_red_on_a_terminal(idle: NeonClient, terminal: Console) -> None:
    with WaitProgress(idle, console=terminal) as progress:
        progress(failed("op-1", "no room"))
    assert f"{RED}create_branch failed in late-frost-12345678: no room" in written(terminal)


async def test_no_color_takes_the_colours_away(
    idle: NeonClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    terminal = Console(file=io.StringIO(), force_terminal=True, color_system="standard")
    with WaitProgress(idle, console=terminal) as progress:
        progress(failed("op-1", "no room"))
    assert "no room" in written(terminal)
    assert "\x1b[3" not in written(terminal)


async def test_what_a_script_prints_meanwhile_stays_where_it_belongs(
    idle: NeonClient, terminal: Console, capsys: pytest.CaptureFixture[str]
) -> None:
    with WaitProgress(idle, console=terminal):
        sys.stdout.write("an id\n")
        sys.stderr.write("a log\n")
    assert capsys.readouterr() == ("an id\n", "a log\n")
    assert "an id" not in written(terminal)


async def test_colours_that_are_forced_make_no_terminal_of_a_file(
    idle: NeonClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with WaitProgress(idle) as progress:
        progress(operation())
    assert CURSOR_HIDDEN not in capsys.readouterr().err


async def test_of_many_failures_the_first_are_shown(idle: NeonClient) -> None:
    with WaitProgress(idle, console=a_file()) as progress:
        for number in range(300):
            progress(failed(f"op-{number}", f"{number} is no good " + "because " * 1000))
        lines = shown(progress, width=80)
    assert len(lines) < 24
    assert sum("is no good" in line for line in lines) == 5
    assert "and 295 more failures" in lines


async def test_what_a_terminal_would_obey_is_not_shown(idle: NeonClient, terminal: Console) -> None:
    with WaitProgress(idle, console=terminal) as progress:
        progress(failed("op-1", "[bold]no[/bold]\x1b]0;owned\x07\r\nroom"))
        progress(operation("op-2", "odd\x1b]0;owned\x07"))
    assert "[bold]no[/bold] ]0;owned room" in written(terminal)
    assert "\x1b]" not in written(terminal)


async def test_a_failure_that_the_platform_will_try_again_is_no_end(idle: NeonClient) -> None:
    again = datetime.now(UTC) + timedelta(seconds=30)
    console = a_file()
    with WaitProgress(idle, console=console) as progress:
        progress(failed("op-1", "no room", retry_at=again))
        assert shown(progress)[-2].startswith("0 of 1 operations ended")
    assert "no room" not in written(console)


@pytest.mark.parametrize(("height", "rows"), [(5, 1), (12, 8), (60, 20)])
async def test_of_many_projects_those_with_something_pending_come_first(
    idle: NeonClient, height: int, rows: int
) -> None:
    with WaitProgress(idle, console=a_file()) as progress:
        for number in range(500):
            state = "running" if number % 50 == 49 else "finished"
            progress(operation(f"op-{number}", state, project_id=f"project-{number}"))
        *bars, more, _summary, _by_status = shown(progress, height=height)
    assert len(bars) == rows
    assert more == f"and {500 - rows} more projects"
    assert all("0 of 1" in bar for bar in bars[:10])
    assert all("1 of 1" in bar for bar in bars[10:])


async def test_waits_side_by_side_may_feed_one(neon: NeonClient) -> None:
    console = a_file()
    with WaitProgress(neon, console=console) as progress:

        async def provision(name: str) -> None:
            created = await neon.projects.create(name=name)
            async for record in neon.operations.watch(created):
                progress(record)

        async with asyncio.TaskGroup() as group:
            for name in ("a", "b", "c"):
                group.create_task(provision(name))
        assert len(shown(progress)) == 3 + 2
    assert written(console).splitlines()[-1].startswith("6 of 6 operations ended")


async def test_a_wait_that_is_cancelled_leaves_a_clean_screen(
    neon: NeonClient, terminal: Console
) -> None:
    async def provision() -> None:
        with WaitProgress(neon, console=terminal) as progress:
            created = await neon.projects.create(name="p")
            await neon.operations.wait(created, on_update=progress)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3):
            await provision()
    left = written(terminal)
    assert left.rindex(CURSOR_SHOWN) > left.rindex(CURSOR_HIDDEN)
    assert "0 of 2 operations ended after 0:00:03" in left
    await asyncio.sleep(60)
    assert written(terminal) == left


@pytest.mark.parametrize("limit", [700, None])
async def test_the_requests_that_count_now_are_shown_with_their_limit(
    control_plane: LocalControlPlane, limit: int | None
) -> None:
    budget = msgspec.structs.replace(NeonClient(API_KEY).budget, per_minute=limit)
    async with NeonClient(
        control_plane.api_key, base_url=control_plane.base_url, budget=budget
    ) as neon:
        with WaitProgress(neon, console=a_file()) as progress:
            await neon.projects.list().collect()
            of_limit = "" if limit is None else f" of {limit}"
            assert shown(progress)[-1].endswith(f"with 1{of_limit} requests this minute")
            await asyncio.sleep(61)
            assert shown(progress)[-1].endswith(f"with 0{of_limit} requests this minute")


def test_without_rich_the_import_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.delitem(sys.modules, "neonctl_async.progress")
    with pytest.raises(ImportError, match=r"install neonctl-async\[cli\]"):
        importlib.import_module("neonctl_async.progress")
