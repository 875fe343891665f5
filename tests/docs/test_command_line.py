"""The commands that README and docs show work."""

import os
import re
from pathlib import Path

import pytest

from neonctl_async.cli.exits import ExitCode
from tests.cli.conftest import CommandLine
from tests.cli.served import Served
from tests.cli.test_command import COMMANDS
from tests.support.pages import ROOT, TEXTS, commands, names_side_by_side, words

PAGE = TEXTS["docs/command-line.md"]
BRANCH = "/projects/{project_id}/branches/{branch_id}"
WITH_COMMANDS = [name for name, text in TEXTS.items() if "$ neonctl-async " in text]
NOT_RUN = {"local", "demo", "psql", "--install-completion"}
"""Commands that have other tests, or would change the shell."""


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands_of_a_page_work(
    page: str,
    cli: CommandLine,
    quick: Served,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # commands write files
    Path("examples").symlink_to(ROOT / "examples")
    monkeypatch.setenv("NEON_PROJECT_ID", quick.project().project.id)
    for command, _ in commands(TEXTS[page]):
        program, *arguments = map(os.path.expandvars, words(command))
        if program == "neonctl-async" and arguments[0] not in NOT_RUN:
            result = cli(*arguments, at=quick)
            assert result.exit_code == 0, result.output
            if stored := re.match(r"export (\w+)=", command):
                monkeypatch.setenv(stored[1], result.stdout.strip())


def test_page_names_every_exit_code() -> None:
    for code in ExitCode:
        assert str(int(code)) in PAGE


def test_table_for_users_of_neon_names_existing_commands_and_endpoints() -> None:
    """The tests with Node.js check that it lists every command of neon."""
    endpoints = set(re.findall(r"`[A-Z]+ (/\S+)`", TEXTS["docs/endpoints.md"]))
    listed = {name for _, ours in names_side_by_side(PAGE, "## Coming from neon") for name in ours}
    paths = {name.replace("…", BRANCH) for name in listed if name.startswith(("/", "…"))}
    assert paths <= endpoints
    others = {"allowed_ips", "neon.functions.deploy"}
    names = {name for name in listed if not name.startswith(("/", "…", "--"))} - others
    assert {tuple(name.split()) for name in names} <= {*COMMANDS}
