import os
from pathlib import Path

import pytest

from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.files import open_directory, read_file, write_file


@pytest.mark.parametrize("durable", [False, True])
def test_file_is_replaced_and_only_its_owner_reads_it(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "settings"
    path.write_text("old")
    path.chmod(0o644)
    write_file(path, "neu: ü", account=None, durable=durable)
    assert path.read_text(encoding="utf-8") == "neu: ü"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_disk_error_is_an_error_of_the_cluster(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"nowhere/file' cannot be written: No such file"):
        write_file(tmp_path / "nowhere" / "file", "text", account=None, durable=False)


def test_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "settings"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_file(path, "\udc80", account=None, durable=False)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_only_regular_files_and_directories_are_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "directory").mkdir()
    (tmp_path / "linked").symlink_to("directory")
    os.mkfifo(tmp_path / "fifo")
    with open_directory(tmp_path) as directory:
        assert read_file("file", directory) == read_file(tmp_path / "file") == b"content"
        for name in ("link", "directory", "fifo"):
            with pytest.raises(OSError, match=r"symbolic link|not a regular file"):
                read_file(name, directory)
        with (
            pytest.raises(OSError, match=r"ymbolic link|Not a directory"),
            open_directory("linked", directory),
        ):
            pass
