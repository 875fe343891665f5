"""Checks files, imports and command of an environment, and runs the quick start in it."""

import json
import re
import shlex
import subprocess
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.rehearsal.archives import differences
from tools.rehearsal.installers import Commands
from tools.rehearsal.plan import Installation

PROBE = Path(__file__).with_name("probe.py")
WITH_SERVER = {"console", "local", "postgres", "testing"}
"""The extras that install the local control plane, which the quick start runs on."""
SECONDS = 120.0
"""The longest time that a check may take."""


@dataclass(frozen=True)
class Expected:
    """The values that every installation has: version, hashes of files, program and its output."""

    version: str
    records: Mapping[str, str]
    program: str
    output: str = "preview is ready at"


def quick_start(page: str) -> str:
    """Return the program of the quick start: its only block with an event loop of its own."""
    blocks: list[str] = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    programs = [block for block in blocks if "asyncio.run(" in block]
    if len(programs) != 1:
        raise ValueError(f"the quick start has {len(programs)} programs: expected one")
    return programs[0]


def problems(
    installation: Installation, commands: Commands, expected: Expected, folder: Path
) -> list[str]:
    """Run all checks and return the problems."""
    return [
        *_problems_of_files(installation, commands, expected, folder),
        *_problems_of_command(installation, commands, expected.version, folder),
        *(
            problems_of_quick_start(commands, expected, folder)
            if WITH_SERVER.intersection(installation.extras)
            else []
        ),
    ]


def run(
    commands: Commands, folder: Path, *command: str | Path, timeout: float = SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run a command in the environment of an installation, at most ``timeout`` seconds."""
    return subprocess.run(
        command,
        cwd=folder,
        env=commands.environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def _problems_of_files(
    installation: Installation, commands: Commands, expected: Expected, folder: Path
) -> list[str]:
    done = run(commands, folder, commands.python, "-I", "-W", "error", PROBE)
    if done.returncode != 0:
        return [f"the probe failed: {last_line(done.stderr)}"]
    return judged(installation, json.loads(done.stdout), expected)


def judged(installation: Installation, found: Mapping[str, Any], expected: Expected) -> list[str]:
    """Return the problems of the results of the probe."""
    wrong: list[str] = list(found["problems"])
    if found["version"] != expected.version:
        wrong.append(f"the version is {found['version']}: expected {expected.version}")
    if not found["from_index"]:
        wrong.append("the installation did not come from a package index")
    if other := differences(expected.records, found["records"]):
        wrong.append(f"{len(other)} files differ from those of the wheel: {other[0]}")
    if missing := sorted({*installation.extras} - {*found["extras"]}):
        wrong.append(f"requirements of the extras {missing} are missing")
    return wrong


def _problems_of_command(
    installation: Installation, commands: Commands, version: str, folder: Path
) -> list[str]:
    done = run(commands, folder, commands.program, "--version")
    return judged_command(done.returncode, done.stdout, done.stderr, version, installation.extras)


def judged_command(
    status: int, output: str, errors: str, version: str, extras: Sequence[str]
) -> list[str]:
    """Return the problem of ``neonctl-async --version``, which needs the extra ``cli``."""
    if "cli" in extras:
        right = (status, output, errors) == (0, f"{version}\n", "")
    else:
        right = status == 2 and not output and "pip install 'neonctl-async[cli]'" in errors
    return [] if right else [f"the command exited with {status}: {last_line(output + errors)}"]


def problems_of_quick_start(commands: Commands, expected: Expected, folder: Path) -> list[str]:
    """Run the program of the quick start on a local control plane, and return its problem."""
    (folder / "preview.py").write_text(expected.program, encoding="utf-8")
    with _control_plane(commands, folder) as variables:
        if not variables:
            return [f"the local control plane did not start: {_log_line(folder)}"]
        program = Commands([], {**commands.environment, **variables}, commands.python)
        done = run(program, folder, commands.python, "-W", "error", "preview.py")
    if done.returncode != 0 or expected.output not in done.stdout:
        return [f"the program of the quick start failed: {last_line(done.stderr + done.stdout)}"]
    return []


@contextmanager
def _control_plane(commands: Commands, folder: Path) -> Generator[dict[str, str]]:
    """Run a local control plane, and yield the variables that it prints."""
    with (folder / "control-plane.log").open("w") as log:
        server = subprocess.Popen(
            [commands.python, "-m", "neonctl_local", "--port", "0"],
            cwd=folder,
            env={**commands.environment, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        with server:
            assert server.stdout is not None
            giving_up = threading.Timer(SECONDS, server.kill)
            giving_up.start()
            lines = [server.stdout.readline(), server.stdout.readline()]
            giving_up.cancel()
            try:
                yield exported(lines) if all(lines) else {}
            finally:
                server.terminate()  # in the background of a script, SIGINT is ignored
                _stop(server)


def _stop(server: subprocess.Popen[str]) -> None:
    try:
        server.wait(30)
    except subprocess.TimeoutExpired:
        server.kill()


def exported(lines: Sequence[str]) -> dict[str, str]:
    """Return the variables of the lines ``export NAME=VALUE``."""
    words = (shlex.split(line.removeprefix("export ")) for line in lines)
    return {name: value for [word] in words for name, _, value in [word.partition("=")]}


def _log_line(folder: Path) -> str:
    return last_line((folder / "control-plane.log").read_text(encoding="utf-8"))


def last_line(text: str) -> str:
    """Return the last line of an output, which names the error of most programs."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no output"
