"""Runs the installations of a rehearsal, two at a time."""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from tools.rehearsal import checks
from tools.rehearsal.archives import ROOT
from tools.rehearsal.index import Index
from tools.rehearsal.installers import commands, prepare_pipx
from tools.rehearsal.plan import Installation

CONCURRENCY = 2
SECONDS = 900.0
"""The longest time that one command of an installer may take."""


@dataclass(frozen=True)
class Result:
    """The problems of an installation, and its duration in seconds."""

    installation: Installation
    seconds: float
    problems: Sequence[str]


def interpreters() -> dict[str, str]:
    """Return the path of each supported CPython of this machine, by its version."""
    pythons = [sys.executable, str(ROOT / "tools" / "pythons.py")]
    versions = subprocess.check_output([*pythons, "--all"], text=True).split()
    return {version: _real_path([*pythons, version]) for version in versions}


def _real_path(command: list[str]) -> str:
    # A shim of pyenv selects a version by the current folder, so the path behind it is used.
    shim = subprocess.check_output(command, text=True).strip()
    return subprocess.check_output(
        [shim, "-c", "import sys; print(sys.executable)"], text=True
    ).strip()


def run(
    installations: Sequence[Installation],
    pythons: Mapping[str, str],
    index: Index,
    expected: checks.Expected,
    folder: Path,
) -> Iterator[Result]:
    """Run all installations and yield each result as soon as it is known."""
    if any(each.installer == "pipx" for each in installations):
        prepare_pipx(folder)
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        futures = [
            pool.submit(
                _result, each, pythons[each.version], index.url, expected, folder / str(number)
            )
            for number, each in enumerate(installations)
        ]
        for future in as_completed(futures):
            yield future.result()


def _result(
    installation: Installation, python: str, index: str, expected: checks.Expected, folder: Path
) -> Result:
    """Install, check, and delete the environment."""
    folder.mkdir()
    start = time.monotonic()
    try:
        problems = _problems(installation, python, index, expected, folder)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        problems = [f"{type(error).__name__}: {error}"]
    shutil.rmtree(folder)
    return Result(installation, time.monotonic() - start, problems)


def _problems(
    installation: Installation, python: str, index: str, expected: checks.Expected, folder: Path
) -> list[str]:
    planned = commands(installation, python, index, folder)
    for command in planned.commands:
        done = checks.run(planned, folder, *command, timeout=SECONDS)
        if done.returncode != 0:
            return [f"the installation failed: {checks.last_line(done.stdout + done.stderr)}"]
    return checks.problems(installation, planned, expected, folder)
