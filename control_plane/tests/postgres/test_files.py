from pathlib import Path

import pytest

from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.files import write_file


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
