"""The archive of WAL: its command, which can be interrupted, and what is removed from it."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from neonctl_local.postgres.history.archive import History
from neonctl_local.postgres.history.bases import Base

SEGMENT = "000000010000000000000005"


@pytest.fixture(params=[False, True], ids=["", "durable"])
def history(tmp_path: Path, request: pytest.FixtureRequest) -> History:
    """The history of a data directory with one segment, in a directory with an odd name."""
    data = tmp_path / "it's 100%f" / "data"
    (data / "pg_wal").mkdir(parents=True)
    (data / "pg_wal" / SEGMENT).write_bytes(b"wal")
    history = History(data, None, durable=request.param)
    history.open()
    return history


def archive(history: History) -> int:
    """Archive the segment, as Postgres does. Return the status of the command."""
    command = history.settings()["archive_command"]
    for placeholder, value in (("%p", f"pg_wal/{SEGMENT}"), ("%f", SEGMENT), ("%%", "%")):
        command = command.replace(placeholder, value)
    return subprocess.run(
        ["/bin/sh", "-c", command], cwd=history.data, check=False, capture_output=True
    ).returncode


@pytest.mark.process
def test_archived_segment_is_the_file_of_the_server(history: History) -> None:
    assert archive(history) == 0
    assert (history.wal / SEGMENT).samefile(history.data / "pg_wal" / SEGMENT)


@pytest.mark.process
def test_command_that_was_interrupted_after_the_link_succeeds_again(history: History) -> None:
    assert archive(history) == 0
    assert archive(history) == 0


@pytest.mark.process
def test_other_segment_of_the_same_name_is_not_replaced(history: History) -> None:
    (history.wal / SEGMENT).write_bytes(b"other")
    assert archive(history) != 0
    assert (history.wal / SEGMENT).read_bytes() == b"other"


def test_wal_before_the_oldest_copy_is_removed(history: History) -> None:
    bases = [
        Base(
            number=number,
            taken_at=datetime(2026, 1, number, tzinfo=UTC),
            lsn=f"0/{number}00000",
            segment=f"0000000100000000{number:08X}",
            size=1,
        )
        for number in (2, 4)
    ]
    for base in bases:
        directory = history.base_directory(base.number)
        directory.mkdir()
        directory.with_suffix(".json").write_bytes(msgspec.json.encode(base))
    names = [f"0000000100000000{number:08X}" for number in range(2, 7)]
    for name in names:
        (history.wal / name).write_bytes(b"1234")
    assert history.usage() == [(bases[0], 1 + 2 * 4), (bases[1], 1 + 3 * 4)]
    history.drop(bases[:1])
    assert history.bases() == bases[1:]
    assert sorted(path.name for path in history.wal.iterdir()) == names[2:]
    assert not history.base_directory(2).exists()


def test_copies_that_were_interrupted_are_removed(history: History) -> None:
    directory = history.base_directory(3)
    for name in (directory.name, f"{directory.name}.partial"):
        directory.with_name(name).mkdir()
    assert history.new_base() == 1
    assert list(directory.parent.iterdir()) == [history.wal]
