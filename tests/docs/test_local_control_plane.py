"""Examples about the local control plane that send requests from a terminal."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from neonctl_async import NeonClient
from neonctl_local import Durations, LocalControlPlane
from neonctl_local.__main__ import main
from tests.cli.conftest import CommandLine
from tests.cli.served import Served, served
from tests.support.pages import TEXTS, commands, words

PAGE = TEXTS["docs/local-control-plane.md"]
PEOPLE = PAGE.partition("### People")[2].partition("\n## ")[0]
CHECKS = PAGE.partition("## Checks of requests")[2].partition("\n## ")[0]
LOCAL = ["python", "-m", "neonctl_local"]


class Shell:
    """Runs the commands of the page in this process, and keeps its variables."""

    def __init__(
        self,
        server: Served,
        cli: CommandLine,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self._server, self._cli, self._capsys = server, cli, capsys
        self._set = monkeypatch.setenv
        self._replace = monkeypatch.setattr
        for name, value in server.environment.items():
            self._set(name, value)

    def run(self, command: str) -> str:
        """Run a command as a shell does, and return its output."""
        arguments = [os.path.expandvars(word) for word in words(command)]
        while "|" in arguments:
            pipe = arguments.index("|")
            self._replace("sys.stdin", StringIO(self.run(shlex.join(arguments[:pipe]))))
            arguments = arguments[pipe + 1 :]
        self._capsys.readouterr()
        if arguments[:3] == LOCAL:
            assert main(arguments[3:]) == 0
            out, err = self._capsys.readouterr()
        elif arguments[0] == "neonctl-async":
            out, err = self._cli(*arguments[1:], at=self._server).stdout, ""
        else:
            out, err = subprocess.check_output(arguments, text=True), ""
        if variable := re.match(r"(\w+)=\$\(", command):
            self._set(variable[1], out.strip())
            return err
        if command.startswith("eval "):
            self._set(*out.removeprefix("export ").strip().split("=", 1))
            return err
        return err + out


@pytest.fixture
def server() -> Iterator[Served]:
    """A local control plane of this test, because its commands create organizations."""
    with served(LocalControlPlane(durations=Durations(default=0))) as server:
        yield server


@pytest.fixture
def shell(
    server: Served,
    cli: CommandLine,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Shell:
    """A shell with the variables that the server printed."""
    monkeypatch.chdir(tmp_path)
    return Shell(server, cli, capsys, monkeypatch)


@pytest.mark.process
@pytest.mark.parametrize("section", [PEOPLE, CHECKS], ids=["people", "checks"])
def test_commands_print_what_the_page_shows(shell: Shell, section: str) -> None:
    shown = [*commands(section)]
    assert shown
    for command, output in shown:
        printed = shell.run(command).splitlines()
        assert [_shape(line) for line in printed] == [_shape(line) for line in output]


@pytest.mark.process
def test_example_of_people_moves_the_project(shell: Shell, server: Served) -> None:
    for command, _ in commands(PEOPLE):
        shell.run(command)
    assert server.run(_owner_of_the_project) == os.environ["SHOP_ID"]


def _shape(line: str) -> str:
    """Return a line without its ids, which differ in each run."""
    line = re.sub(r'"request_id":"[^"]*"', "", line)
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|org-[\w-]+", "ID", line)


async def _owner_of_the_project(_administrator: NeonClient) -> str | None:
    async with NeonClient() as ada:
        return (await ada.projects.get(os.environ["PROJECT_ID"])).org_id


def test_page_names_every_command_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    for group in ("user", "org", "member"):
        with pytest.raises(SystemExit):
            main([group, "--help"])
        for name in re.findall(r"^    (\w+) ", capsys.readouterr().out, re.MULTILINE):
            assert f"`{group} {name}" in PEOPLE, (group, name)
