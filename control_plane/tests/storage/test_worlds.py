"""The data of the tests: each table has rows."""

from pathlib import Path

from control_plane.tests.storage.files import tables
from control_plane.tests.storage.worlds import load
from neonctl_local.storage.tables import NEVER


def test_data_of_the_tests_have_rows_in_every_table(tmp_path: Path) -> None:
    content = tables(load("accounts", tmp_path / "data.db"))
    empty = [name for name, (_, rows) in content.items() if not rows]
    assert empty == [], "create rows of these tables in worlds.py"


def test_data_of_real_databases_have_work_in_all_states(tmp_path: Path) -> None:
    text = repr(tables(load("real", tmp_path / "data.db")))
    assert "CopyCluster" in text
    assert "no space left on device" in text
    assert str(NEVER) in text  # the end of work that runs
