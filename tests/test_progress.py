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

from neonctl_async import NeonClient, Operation, OperationStatus, RateBudget
from neonctl_async.progress import WaitProgress
from neonctl_async.types import OperationAction
from neonctl_local import Durations, LocalControlPlane
from tests.support.pages import TEXTS, code_blocks
from tests.support.records import API_KEY, EPOCH, operation

pytestmark = [
    pytest.mark.virtual_time,
    pytest.mark.control_plane(durations=Durations(default=7.0)),
]

CURSOR_HIDDEN, CURSOR_SHOWN = "\x1b[?25l", "\x1b[?25h"
RED = "\x1b[31m"


@pytest.fixture
async def idle() -> AsyncIterator[NeonClient]:
    """A client that sends no requests; the tests pass the records."""
    async with NeonClient(API_KEY) as neon:
        yield neon


def file_console() -> Console:
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
    """Return the lines of a frame."""
    screen = Console(file=io.StringIO(), width=width, height=height)
    screen.print(progress)
    return [line.rstrip() for line in written(screen).splitlines()]


def failed(id: str, error: str, **more: object) -> Operation:
    return msgspec.structs.replace(operation(id, "failed"), error=error, **more)


async def test_without_a_terminal_a_line_is_printed_every_five_seconds_and_on_exit(
    neon: NeonClient,
) -> None:
    console = file_console()
    with WaitProgress(neon, console=console) as progress:
        created = await neon.projects.create(name="p")
        await neon.operations.wait(created, on_update=progress)
    first, *_, last = written(console).splitlines()
    assert first.startswith("0 of 2 operations done in 0:00:05, ")
    assert first.endswith(" of 700 requests in the last minute: 1 running, 1 scheduling")
    assert last.startswith("2 of 2 operations done in 0:00:1")
    assert last.endswith(": 2 finished")
    assert "\x1b" not in written(console)


async def test_without_a_terminal_and_operations_nothing_is_printed(idle: NeonClient) -> None:
    console = file_console()
    with WaitProgress(idle, console=console):
        await asyncio.sleep(60)
    assert written(console) == ""


async def test_live_display_updates_the_time_between_two_records(
    idle: NeonClient, terminal: Console
) -> None:
    with WaitProgress(idle, console=terminal) as progress:
        progress(operation())
        await asyncio.sleep(2.1)
        assert "in 0:00:02" in written(terminal)
        assert "1 running" in written(terminal)


async def test_each_project_has_a_bar(idle: NeonClient) -> None:
    with WaitProgress(idle, console=file_console()) as progress:
        for project in ("first", "second"):
            progress(operation("op-1", "finished", project_id=project))
        progress(operation("op-2", "running", project_id="second"))
        first, second, summary, by_status = shown(progress, width=100)
    assert first.split() == ["first", "━" * 25, "1", "of", "1"]
    assert second.split()[0] == "second"
    assert second.endswith(" 1 of 2")
    assert second.count("━") < 25
    assert summary == "2 of 3 operations done in 0:00:00, 0 of 700 requests in the last minute"
    assert by_status == "2 finished, 1 running"


async def test_text_blocks_of_the_docs_page_match_the_output(idle: NeonClient) -> None:
    console = file_console()
    with WaitProgress(idle, console=console) as progress:
        for project, statuses in {
            "misty-wind-89243632": ["finished"] * 8,
            "silent-snow-29832645": ["finished"] * 4 + ["running"] * 4,
            "small-dream-11630550": ["finished"] * 6 + ["failed"] * 2,
        }.items():
            for number, status in enumerate(statuses):
                record = operation(f"op-{number}", status, project_id=project)
                error = "quota of computes is used up" if status == "failed" else None
                progress(msgspec.structs.replace(record, error=error))
        await asyncio.sleep(11)
        frame = shown(progress, width=100)
    terminal_block, file_block = (
        re.sub(r"\d+ of 700", "0 of 700", text).splitlines()
        for _, text in code_blocks(TEXTS["docs/observability.md"], "text")
    )
    assert frame == terminal_block
    assert file_block[0] in written(console).splitlines()


async def test_unknown_status_is_counted_under_its_own_name(idle: NeonClient) -> None:
    with WaitProgress(idle, console=file_console()) as progress:
        progress(operation(status="paused"))
        assert shown(progress)[-1] == "1 paused"
        progress(operation(status="finished"))
        assert shown(progress)[-1] == "1 finished"


async def test_operation_of_two_waits_is_counted_once_by_its_newest_record(
    idle: NeonClient,
) -> None:
    older = operation(status="running")
    newer = msgspec.structs.replace(
        older, status=OperationStatus.FINISHED, updated_at=older.updated_at + timedelta(seconds=1)
    )
    with WaitProgress(idle, console=file_console()) as progress:
        for record in (older, newer, older, newer):
            progress(record)
        assert shown(progress)[-1] == "1 finished"


async def test_failure_with_the_same_text_is_printed_once_and_counted(idle: NeonClient) -> None:
    console = file_console()
    with WaitProgress(idle, console=console) as progress:
        for number in range(3):
            progress(failed(f"op-{number}", "disk full"))
            progress(failed(f"op-{number}", "disk full"))
        assert "create_branch failed in late-frost-12345678: disk full (and 2 more)" in shown(
            progress
        )
    assert written(console).count("disk full") == 1


async def test_failure_of_an_operation_that_neon_runs_again_disappears(idle: NeonClient) -> None:
    with WaitProgress(idle, console=file_console()) as progress:
        progress(failed("a", "disk full"))
        assert shown(progress)[-1].startswith("create_branch failed in")
        progress(operation("a", "running"))
        assert shown(progress)[-1] == "1 running"


async def test_failure_with_another_text_replaces_the_first(idle: NeonClient) -> None:
    console = file_console()
    with WaitProgress(idle, console=console) as progress:
        progress(failed("a", "disk full"))
        progress(failed("b", "disk full"))
        progress(failed("b", "no memory"))
        assert [line.partition(": ")[2] for line in shown(progress)[-2:]] == [
            "disk full",
            "no memory",
        ]
        progress(operation("b", "running"))
        assert shown(progress)[-1].endswith(": disk full")
        progress(operation("a", "running"))
        assert shown(progress)[-1] == "2 running"
    assert written(console).count("no memory") == 1


async def test_failure_names_an_operation_that_still_has_it(idle: NeonClient) -> None:
    with WaitProgress(idle, console=file_console()) as progress:
        progress(failed("a", "disk full"))
        progress(operation("a", "running"))
        progress(failed("b", "disk full", action=OperationAction.START_COMPUTE))
        assert shown(progress)[-1].startswith("start_compute failed in")


async def test_finished_record_counts_even_if_it_is_older(idle: NeonClient) -> None:
    with WaitProgress(idle, console=file_console()) as progress:
        later = EPOCH + timedelta(seconds=1)
        progress(msgspec.structs.replace(operation("a"), updated_at=later))
        progress(operation("a", "finished"))
        assert shown(progress)[-1] == "1 finished"


async def test_failures_are_red_on_a_terminal(idle: NeonClient, terminal: Console) -> None:
    with WaitProgress(idle, console=terminal) as progress:
        progress(failed("op-1", "disk full"))
    assert f"{RED}create_branch failed in late-frost-12345678: disk full" in written(terminal)


async def test_live_display_works_with_closed_streams(
    idle: NeonClient, terminal: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout", None)
    monkeypatch.setattr("sys.stderr", None)
    with WaitProgress(idle, console=terminal) as progress:
        progress(operation("a", "finished"))
    assert "1 of 1 operations" in written(terminal)


async def test_no_color_removes_the_colours(
    idle: NeonClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    terminal = Console(file=io.StringIO(), force_terminal=True, color_system="standard")
    with WaitProgress(idle, console=terminal) as progress:
        progress(failed("op-1", "disk full"))
    assert "disk full" in written(terminal)
    assert "\x1b[3" not in written(terminal)


async def test_output_to_a_pipe_is_not_redirected_to_the_terminal(
    idle: NeonClient, terminal: Console, capsys: pytest.CaptureFixture[str]
) -> None:
    with WaitProgress(idle, console=terminal):
        sys.stdout.write("an id\n")
        sys.stderr.write("a log\n")
    assert capsys.readouterr() == ("an id\n", "a log\n")
    assert "an id" not in written(terminal)


async def test_force_color_does_not_enable_the_live_display(
    idle: NeonClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with WaitProgress(idle) as progress:
        progress(operation())
    assert CURSOR_HIDDEN not in capsys.readouterr().err


async def test_only_the_first_five_failures_are_shown(idle: NeonClient) -> None:
    with WaitProgress(idle, console=file_console()) as progress:
        for number in range(300):
            progress(failed(f"op-{number}", f"{number} is no good " + "because " * 1000))
        lines = shown(progress, width=80)
    assert len(lines) < 24
    assert sum("is no good" in line for line in lines) == 5
    assert "and 295 more failures" in lines


async def test_terminal_control_characters_are_removed(idle: NeonClient, terminal: Console) -> None:
    with WaitProgress(idle, console=terminal) as progress:
        progress(failed("op-1", "[bold]disk[/bold]\x1b]0;owned\x07\r\nfull"))
        progress(operation("op-2", "odd\x1b]0;owned\x07"))
    assert "[bold]disk[/bold] ]0;owned full" in written(terminal)
    assert "\x1b]" not in written(terminal)


async def test_failure_with_a_future_retry_is_pending(idle: NeonClient) -> None:
    retry_at = datetime.now(UTC) + timedelta(seconds=30)
    console = file_console()
    with WaitProgress(idle, console=console) as progress:
        progress(failed("op-1", "disk full", retry_at=retry_at))
        assert shown(progress)[-2].startswith("0 of 1 operations done")
    assert "disk full" not in written(console)


@pytest.mark.parametrize(("height", "rows"), [(5, 1), (12, 8), (60, 20)])
async def test_pending_projects_come_first_if_not_all_fit(
    idle: NeonClient, height: int, rows: int
) -> None:
    with WaitProgress(idle, console=file_console()) as progress:
        for number in range(500):
            status = "running" if number % 50 == 49 else "finished"
            progress(operation(f"op-{number}", status, project_id=f"project-{number}"))
        *bars, more, _summary, _by_status = shown(progress, height=height)
    assert len(bars) == rows
    assert more == f"and {500 - rows} more projects"
    assert all("0 of 1" in bar for bar in bars[:10])
    assert all("1 of 1" in bar for bar in bars[10:])


async def test_concurrent_waits_can_share_one_display(neon: NeonClient) -> None:
    console = file_console()
    with WaitProgress(neon, console=console) as progress:

        async def provision(name: str) -> None:
            created = await neon.projects.create(name=name)
            async for record in neon.operations.watch(created):
                progress(record)

        async with asyncio.TaskGroup() as group:
            for name in ("a", "b", "c"):
                group.create_task(provision(name))
        assert len(shown(progress)) == 3 + 2
    assert written(console).splitlines()[-1].startswith("6 of 6 operations done")


async def test_cancelled_wait_leaves_the_cursor_visible_and_stops_drawing(
    neon: NeonClient, terminal: Console
) -> None:
    async def provision() -> None:
        with WaitProgress(neon, console=terminal) as progress:
            created = await neon.projects.create(name="p")
            await neon.operations.wait(created, on_update=progress)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3):
            await provision()
    output = written(terminal)
    assert output.rindex(CURSOR_SHOWN) > output.rindex(CURSOR_HIDDEN)
    assert "0 of 2 operations done in 0:00:03" in output
    await asyncio.sleep(60)
    assert written(terminal) == output


@pytest.mark.parametrize("limit", [700, None])
async def test_requests_of_the_last_minute_are_shown_with_their_limit(
    control_plane: LocalControlPlane, limit: int | None
) -> None:
    budget = msgspec.structs.replace(NeonClient(API_KEY).budget, per_minute=limit)
    async with NeonClient(
        control_plane.api_key, base_url=control_plane.base_url, budget=budget
    ) as neon:
        with WaitProgress(neon, console=file_console()) as progress:
            await neon.projects.list().collect()
            of_limit = "" if limit is None else f" of {limit}"
            assert shown(progress)[-1].endswith(f", 1{of_limit} requests in the last minute")
            await asyncio.sleep(61)
            assert shown(progress)[-1].endswith(f", 0{of_limit} requests in the last minute")


async def test_summary_names_the_stretch_of_polls_while_the_rate_budget_is_short(
    control_plane: LocalControlPlane,
) -> None:
    budget = RateBudget(per_minute=10)
    async with NeonClient(
        control_plane.api_key, base_url=control_plane.base_url, budget=budget
    ) as neon:
        with WaitProgress(neon, console=file_console()) as progress:
            async with asyncio.TaskGroup() as group:
                for name in ("a", "b", "c"):
                    created = await neon.projects.create(name=name)
                    group.create_task(neon.operations.wait(created, on_update=progress))
                await asyncio.sleep(1)
                stretch = neon.poll_stretch
                assert stretch > 1
                assert f" requests in the last minute, polls {stretch:.1f} times as far apart" in (
                    " ".join(shown(progress, width=120))
                )
            assert neon.poll_stretch == 1
            assert " of 10 requests in the last minute" in shown(progress, width=120)[-2]
            assert "times as far apart" not in " ".join(shown(progress, width=120))


async def test_wait_for_the_next_minute_is_shown_before_the_first_record(
    control_plane: LocalControlPlane,
) -> None:
    budget = RateBudget(per_minute=5)
    async with NeonClient(
        control_plane.api_key, base_url=control_plane.base_url, budget=budget
    ) as neon:
        created = await neon.projects.create(name="p")
        for _ in range(4):
            await neon.projects.get(created.project.id)
        console = file_console()
        with WaitProgress(neon, console=console) as progress:
            await neon.operations.wait(created, on_update=progress)
    # The first poll comes later than usual, and then waits for the next minute.
    assert re.search(r"5 of 5 requests .*, the next request in 4\d s because", written(console))
    assert "because of the rate limit" not in written(console).splitlines()[-1]


def test_import_error_without_rich_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.delitem(sys.modules, "neonctl_async.progress")
    with pytest.raises(ImportError, match=r"pip install 'neonctl-async\[cli\]'"):
        importlib.import_module("neonctl_async.progress")
