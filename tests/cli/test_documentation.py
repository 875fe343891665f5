"""What the page on the command line shows works as shown."""

import re
import shlex
from pathlib import Path

import pytest

from neonctl_async.cli.exits import ExitCode
from tests.cli.conftest import CommandLine
from tests.cli.served import Served
from tests.cli.test_command import COMMANDS
from tests.support.pages import code_blocks

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "command-line.md").read_text(encoding="utf-8")
ELSEWHERE = {"local", "demo", "--install-completion"}
"""What is not run here: it has tests of its own, or would change the shell."""


def shown() -> list[list[str]]:
    """The arguments of the commands that the page shows."""
    lines = "".join(text for _, text in code_blocks(PAGE, "console"))
    commands = re.findall(r"neonctl-async ([\w-][^()#\n]*)", lines)
    return [shlex.split(command) for command in commands]


def test_the_commands_that_the_page_shows_work(
    cli: CommandLine, quick: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = [arguments for arguments in shown() if arguments[0] not in ELSEWHERE]
    assert len(run) == 5
    monkeypatch.setenv("NEON_PROJECT_ID", quick.project().project.id)
    for arguments in run:
        result = cli(*arguments, at=quick)
        assert result.exit_code == 0, result.output


def test_the_page_names_every_command_and_exit_code() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    for *group, name in COMMANDS:
        named = (f"`{name}`", f"`{' '.join([*group, name])}`")
        assert any(
            row.startswith(f"| `{' '.join(group)}") and any(one in row for one in named)
            for row in rows
        ), name
    for code in ExitCode:
        assert str(int(code)) in PAGE


def test_pictures_are_small_and_fetch_nothing() -> None:
    for name in re.findall(r"\]\((pictures/[\w-]+\.svg)\)", PAGE):
        picture = (DOCS / name).read_text(encoding="utf-8")
        assert "url(http" not in picture.replace('"', "")
        assert len(picture) < 100_000
