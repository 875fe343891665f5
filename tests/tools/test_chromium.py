"""tools.chromium finds the browser of the tests."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.support.pages import ROOT
from tools.chromium import ChromiumMissingError, find_chromium

Install: TypeAlias = Callable[[str], Path]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """A function that creates an empty program in ``tmp_path``."""

    def install(name: str) -> Path:
        program = tmp_path / name
        program.touch(mode=0o755)
        return program

    return install


@pytest.mark.parametrize("name", ["chromium", "chromium-browser", "google-chrome"])
def test_chromium_is_found_in_path(install: Install, name: str) -> None:
    program = install(name)
    assert find_chromium({"PATH": str(program.parent)}) == str(program)


def test_variable_comes_before_path(install: Install, tmp_path: Path) -> None:
    install("chromium")
    chosen = install("my-chromium")
    assert find_chromium({"PATH": str(tmp_path), "CHROMIUM": str(chosen)}) == str(chosen)


def test_missing_chromium_is_an_error_with_the_command_that_installs_it(tmp_path: Path) -> None:
    with pytest.raises(ChromiumMissingError) as caught:
        find_chromium({"PATH": str(tmp_path)})
    assert str(caught.value) == (
        "this machine has no Chromium: install Chromium (apt-get install chromium), "
        "or set CHROMIUM to its path"
    )


def test_variable_with_another_path_is_an_error(install: Install, tmp_path: Path) -> None:
    install("chromium")
    with pytest.raises(ChromiumMissingError, match=r"CHROMIUM=/not/there is not a program: "):
        find_chromium({"PATH": str(tmp_path), "CHROMIUM": "/not/there"})


@pytest.mark.process
def test_command_fails_with_the_error_alone() -> None:
    command = [sys.executable, "-m", "tools.chromium"]
    environment = {**os.environ, "CHROMIUM": "/not/there"}
    run = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert (run.stdout, run.returncode) == ("", 1)
    assert run.stderr.startswith("CHROMIUM=/not/there is not a program: ")
    assert run.stderr.count("\n") == 1
