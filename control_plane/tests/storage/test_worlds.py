"""The data of the tests: each table of the newest schema has rows."""

import asyncio
from pathlib import Path

from control_plane.tests.storage.files import tables
from control_plane.tests.storage.worlds import make_real_world, make_world
from neonctl_local.storage.operation_plan import NEVER


def test_data_of_the_tests_have_rows_in_every_table(tmp_path: Path) -> None:
    data = tmp_path / "data.db"
    assert asyncio.run(make_world(data))
    empty = [name for name, (_, rows) in tables(data).items() if not rows]
    assert empty == [], "create rows of these tables in worlds.py"


def test_data_of_real_databases_have_work_in_all_states() -> None:
    text = make_real_world()
    assert "CopyCluster" in text
    assert "no space left on device" in text
    assert str(NEVER) in text  # the end of work that runs
