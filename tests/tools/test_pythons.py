"""The search for the CPythons of a machine, with shell scripts in place of interpreters."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import ROOT

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name == "nt", reason="the interpreters are shell scripts"),
]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A directory for fake interpreters: ``bin`` is the PATH, and ``pyenv`` belongs to pyenv."""
    (tmp_path / "bin").mkdir()
    return tmp_path


def install(machine: Path, path: str, output: str, status: int = 0) -> Path:
    """Create an interpreter that prints its implementation and version, whatever it runs."""
    script = machine / path
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(f"#!/bin/sh\necho {output}\nexit {status}\n")
    script.chmod(0o755)
    return script


def environment(machine: Path) -> dict[str, str]:
    return {"PATH": str(machine / "bin"), "PYENV_ROOT": str(machine / "pyenv")}


def pythons(machine: Path, *arguments: str) -> str:
    """Return the output of the program, or its error message if it fails."""
    result = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "pythons.py"), *arguments],
        env=environment(machine),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode == 0) == (result.stderr == "")
    return (result.stdout or result.stderr).strip()


def test_oldest_and_newest_version_are_printed(machine: Path) -> None:
    for minor in (12, 9, 11, 100, 13):
        install(machine, f"bin/python3.{minor}", f"CPython 3 {minor} 4")
    assert pythons(machine) == "3.11 3.100"


@pytest.mark.parametrize(
    ("output", "status"),
    [
        pytest.param("PyPy 3 13 0", 0, id="another implementation"),
        pytest.param("CPython 3 13 0", 1, id="no pip or no venv"),
        pytest.param("pyenv: python3.13: command not found", 127, id="a shim without a version"),
        pytest.param("", 0, id="no output"),
        pytest.param("CPython 3 10 2", 0, id="a name that is wrong"),
    ],
)
def test_unusable_interpreter_is_left_out(machine: Path, output: str, status: int) -> None:
    install(machine, "bin/python3.12", "CPython 3 12 1")
    install(machine, "bin/python3.13", output, status)
    assert pythons(machine) == "3.12"


def test_interpreter_behind_a_failing_shim_of_pyenv_is_found(machine: Path) -> None:
    install(machine, "bin/python3.14", "pyenv: python3.14: command not found", status=127)
    real = install(machine, "pyenv/versions/3.14.0/bin/python3.14", "CPython 3 14 0")
    assert pythons(machine) == "3.14"
    assert pythons(machine, "3.14") == str(real)


@pytest.fixture
def makefile(machine: Path) -> Path:
    """The files that make reads, beside a CPython 3.12."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    (machine / "tools").mkdir()
    (machine / "control_plane").mkdir()
    for name in (
        "Makefile",
        "pyproject.toml",
        "control_plane/pyproject.toml",
        "tools/pythons.py",
    ):
        shutil.copy(ROOT / name, machine / name)
    install(machine, "bin/python3.12", "CPython 3 12 1")
    return machine


def make(machine: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(shutil.which("make")), *arguments],
        cwd=machine,
        env=environment(machine) | {"SHELL": "/bin/sh"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_make_without_a_python_says_what_to_install(makefile: Path) -> None:
    # Without the check, make test-all would have nothing to do, and succeed.
    result = make(makefile, "PYTHON=python-that-is-missing", "test-all")
    assert result.stderr.splitlines()[-1].endswith(
        "python-that-is-missing finds no CPython: install CPython 3.11 or newer, "
        "or name any Python 3 with PYTHON=/path/to/python3.  Stop."
    )
    assert result.returncode == 2
