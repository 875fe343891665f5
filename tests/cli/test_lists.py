"""The options of lists."""

import asyncio
import os
import pty
import re
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress

import pytest

from neonctl_async.cli import lists
from tests.cli.conftest import CommandLine
from tests.cli.process import COMMAND, PACKAGE
from tests.cli.served import Served


def test_columns_are_selected_by_name(cli: CommandLine, quick: Served) -> None:
    created = quick.project("columns")
    result = cli("branches", "list", "--columns", "name, ID", "-p", created.project.id, at=quick)
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["Name", "ID"],
        ["main", created.branch.id],
    ]


def test_unknown_column_is_a_usage_error_that_lists_the_columns(
    cli: CommandLine, quick: Served
) -> None:
    result = cli("projects", "list", "--columns", "id,size", at=quick)
    assert result.stderr.startswith("error: --columns names 'size', which is no column: choose ")
    assert "ID, Name, " in result.stderr
    assert (result.stdout, result.exit_code) == ("", 2)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ("--columns", "id", "-o", "json"),
            "selects columns of a table or CSV, not of --output json",
        ),
        (("--watch",), "repeats a table on a terminal"),
        (("--watch", "0.5"), "--watch"),
    ],
)
def test_wrong_use_of_a_list_option_is_a_usage_error(
    cli: CommandLine, quick: Served, arguments: tuple[str, ...], complaint: str
) -> None:
    result = cli("projects", "list", *arguments, at=quick)
    assert complaint in " ".join(result.stderr.split())
    assert (result.stdout, result.exit_code) == ("", 2)


def test_only_lists_have_the_options(cli: CommandLine) -> None:
    for command in (("projects", "list"), ("orgs", "members")):
        assert "--columns" in cli(*command, "--help").stdout
    assert "--watch" not in cli("projects", "get", "--help").stdout


@pytest.mark.parametrize(
    ("given", "completed"),
    [
        ("--watch", "--watch 5.0"),
        ("--watch 2 --limit 3", "--watch 2 --limit 3"),
        ("--watch --limit 3", "--watch 5.0 --limit 3"),
        ("--watch=2", "--watch=2"),
        ("--limit 3", "--limit 3"),
        ("-- --watch", "-- --watch"),
    ],
)
def test_watch_has_a_default_number_of_seconds(given: str, completed: str) -> None:
    assert lists.with_defaults(given.split()) == completed.split()


@pytest.mark.long
@pytest.mark.process
@pytest.mark.usefixtures("interruptible")
def test_watch_replaces_the_list_until_it_is_interrupted(quick: Served) -> None:
    quick.project("watched")
    terminal, end = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "projects", "list", "--watch", "1"],
        stdin=end,
        stdout=end,
        stderr=end,
        env={**os.environ, **quick.environment, "PYTHONPATH": PACKAGE, "TERM": "xterm"},
    ) as process:
        os.close(end)
        try:
            shown = read_until(terminal, lambda text: text.count("\x1b[H\x1b[J") == 2)
            process.send_signal(signal.SIGINT)
            assert process.wait() == 130
        finally:
            process.kill()
    assert len(re.findall(r"projects list, every 1 s, \d\d:\d\d:\d\d", shown)) == 2
    assert "watched" in shown


@pytest.mark.long
@pytest.mark.process
@pytest.mark.usefixtures("interruptible")
def test_watch_shows_as_many_rows_as_fit_on_the_screen(quick: Served) -> None:
    id = quick.project("high").project.id
    for number in range(9):
        quick.branch(id, f"branch-{number}")
    terminal, end = pty.openpty()
    screen = {"TERM": "xterm", "LINES": "8", "COLUMNS": "80"}
    with subprocess.Popen(
        [*COMMAND, "branches", "list", "-p", id, "--watch"],
        stdin=end,
        stdout=end,
        stderr=end,
        env={**os.environ, **quick.environment, "PYTHONPATH": PACKAGE, **screen},
    ) as process:
        os.close(end)
        try:
            shown = read_until(terminal, lambda text: "more" in text)
        finally:
            process.kill()
    assert "branch-8" in shown
    assert "branch-5" not in shown
    assert "and 7 more" in shown


def read_until(terminal: int, is_enough: Callable[[str], bool]) -> str:
    """Read until ``is_enough`` or until the process has exited."""
    shown = ""
    with suppress(OSError):  # the end of the terminal was closed
        while not is_enough(shown):
            shown += os.read(terminal, 65536).decode()
    return shown


@pytest.mark.virtual_time
async def test_list_is_repeated_after_each_pause() -> None:
    started: list[float] = []
    loop = asyncio.get_running_loop()

    async def work() -> None:
        started.append(loop.time())
        if len(started) == 3:
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        await lists.repeat(work, 5.0)
    assert [time - started[0] for time in started] == pytest.approx([0.0, 5.0, 10.0])
