"""Every command has the documented exit code if its standard output cannot be written."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.cli.process import PACKAGE
from tests.cli.served import Served
from tests.cli.test_command import COMMANDS, environment_of_examples, example_of

pytestmark = [
    pytest.mark.process,
    pytest.mark.scale,
    pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full disk to write to"),
]
WITHOUT_OUTPUT = {("operations", "watch"), ("branches", "schema-diff")}
"""Commands whose examples print nothing, because no operation is pending, and no schema differs."""
WITH_OUTPUT_OF_OTHERS = {("local",), ("psql",), ("branches", "run")}
"""Commands that serve, or run another program: their help is tested."""
CODES = {"closed": 74, "full": 74, "broken": 141}


@pytest.fixture(scope="module")
def forks() -> Generator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "tests.cli.forks"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": PACKAGE},
        text=True,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.parametrize("command", [*COMMANDS, ("--help",), ("--version",)], ids=" ".join)
def test_exit_code_with_unwritable_output(
    cli: CommandLine,
    quick: Served,
    forks: "subprocess.Popen[str]",
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    command: tuple[str, ...],
) -> None:
    for kind, expected in CODES.items():
        variables = environment_of_examples(quick)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        arguments = list(command) if command[0][0] == "-" else example_of(cli, command)
        if command == ("demo",):
            arguments.append("--no-postgres")
        if command in WITH_OUTPUT_OF_OTHERS:
            arguments = [*command, "--help"]
        case = {
            "arguments": arguments,
            "stdout": kind,
            "env": {**variables, **quick.environment},
            "cwd": str(tmp_path),
        }
        assert forks.stdin is not None
        assert forks.stdout is not None
        forks.stdin.write(json.dumps(case) + "\n")
        forks.stdin.flush()
        code, stderr = json.loads(forks.stdout.readline())
        assert code == (0 if command in WITHOUT_OUTPUT else expected), (kind, stderr)
        assert "Traceback" not in stderr
        assert ("standard output cannot be written" in stderr) == (code == 74)
        assert "was revoked" not in stderr or kind == "broken"  # no key was created
        assert not list(tmp_path.glob("neonctl-async-pending-*"))
