import struct
from datetime import UTC, datetime
from pathlib import Path

from neonctl_local.postgres.stopped import newest_commit

FILE = 32 * 819
"""The number of transactions in a complete file of commits."""


def test_newest_commit_is_found_in_later_files(tmp_path: Path) -> None:
    directory = tmp_path / "pg_commit_ts"
    directory.mkdir()
    page = struct.pack("=qH", 1_000_000, 0) * 819 + bytes(2)
    (directory / "000A").write_bytes(page * 32)
    late = struct.pack("=qH", 2_000_000, 0) + bytes(8182)
    (directory / "000B").write_bytes(late + page)
    for first in (10 * FILE, 11 * FILE - 1, 11 * FILE):
        assert newest_commit(tmp_path, first) == datetime(2000, 1, 1, 0, 0, 2, tzinfo=UTC)
    assert newest_commit(tmp_path, 11 * FILE + 819) == datetime(2000, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert newest_commit(tmp_path, 12 * FILE) == datetime(2000, 1, 1, tzinfo=UTC)
