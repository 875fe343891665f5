"""Migrations whose process is killed."""

import subprocess
import sys
from pathlib import Path

import pytest

from control_plane.tests.storage.worlds import load
from tests.support.pages import ROOT


@pytest.mark.long
@pytest.mark.process
def test_migration_that_is_killed_before_any_statement_loses_nothing(tmp_path: Path) -> None:
    data = load("real", tmp_path / "data.db")
    program = [sys.executable, "-m", "control_plane.tests.storage.killed", str(data)]
    ended = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.stderr == ""
    assert int(ended.stdout) >= 15
