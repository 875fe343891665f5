"""The account of the servers."""

import os
import pwd
from pathlib import Path

import pytest

from neonctl_local.postgres.account import (
    ServerAccount,
    check_reachable,
    give,
    server_account,
)
from neonctl_local.postgres.errors import PostgresUnavailableError

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change owners")
STRANGER = ServerAccount(54321, 54322, "stranger")


@pytest.fixture
def status(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file with the capabilities of this process, which has all of them."""
    path = tmp_path / "status"
    path.write_text("Name:\tpython\nCapEff:\t000001ffffffffff\n")
    monkeypatch.setattr("neonctl_local.postgres.account.STATUS", path)
    return path


@pytest.fixture
def accounts(monkeypatch: pytest.MonkeyPatch, status: Path) -> dict[str, int]:
    """The accounts of the machine, by name. This process runs as root."""
    assert status.exists()
    accounts: dict[str, int] = {}

    def find(name: str) -> pwd.struct_passwd:
        return pwd.struct_passwd((name, "x", accounts[name], 7, "", "/", "/bin/sh"))

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("pwd.getpwnam", find)
    return accounts


def test_root_prefers_the_user_postgres(accounts: dict[str, int]) -> None:
    accounts.update(nobody=65534, postgres=101)
    assert server_account() == ServerAccount(101, 7, "postgres")


def test_root_otherwise_uses_nobody(accounts: dict[str, int]) -> None:
    accounts.update(nobody=65534, postgres=0)
    assert server_account() == ServerAccount(65534, 7, "nobody")


def test_machine_without_these_users_is_refused(accounts: dict[str, int]) -> None:
    assert not accounts
    with pytest.raises(PostgresUnavailableError) as raised:
        server_account()
    assert str(raised.value) == (
        "Postgres does not run as root, and neither the user 'postgres' nor 'nobody' exists:"
        " add one of them, or start this program as another user"
    )


def test_root_without_its_capabilities_is_refused(accounts: dict[str, int], status: Path) -> None:
    accounts["postgres"] = 26
    status.write_text("CapEff:\t000001fffffffff5\n")
    with pytest.raises(PostgresUnavailableError, match="lacks CAP_DAC_OVERRIDE, CAP_FOWNER to"):
        server_account()


def test_other_systems_have_no_capabilities(accounts: dict[str, int], status: Path) -> None:
    accounts["postgres"] = 26
    status.unlink()
    assert server_account() == ServerAccount(26, 7, "postgres")


def test_other_users_run_servers_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert server_account() is None


def test_first_closed_directory_is_named(open_directory: Path) -> None:
    closed = open_directory / "closed"
    (closed / "inside").mkdir(parents=True)
    closed.chmod(0o700)
    (closed / "inside").chmod(0o700)
    with pytest.raises(PostgresUnavailableError) as raised:
        check_reachable(closed / "inside", STRANGER)
    assert str(raised.value) == (
        f"the user 'stranger', who runs Postgres, cannot enter '{closed}' (mode 0700), which"
        f" contains '{closed}/inside': use another place, or run chmod o+x {closed}"
    )


def test_without_an_account_nothing_is_checked(open_directory: Path) -> None:
    open_directory.chmod(0o700)
    check_reachable(open_directory, None)
    give(open_directory, None)
    assert open_directory.stat().st_uid == os.geteuid()


def test_bits_of_owner_group_and_others_apply(open_directory: Path) -> None:
    status = open_directory.stat()
    owner = ServerAccount(status.st_uid, 1, "owner")
    member = ServerAccount(54321, status.st_gid, "member")
    for mode, allowed, refused in [
        (0o700, [owner], [member, STRANGER]),
        (0o710, [owner, member], [STRANGER]),
        (0o701, [owner, STRANGER], [member]),
        (0o711, [owner, member, STRANGER], []),
    ]:
        open_directory.chmod(mode)
        for account in allowed:
            check_reachable(open_directory, account)
        for account in refused:
            with pytest.raises(PostgresUnavailableError):
                check_reachable(open_directory, account)
    open_directory.chmod(0o700)


def test_missing_directories_are_ignored(open_directory: Path) -> None:
    check_reachable(open_directory / "missing" / "inside", STRANGER)


def test_link_is_reachable_if_its_target_is(open_directory: Path) -> None:
    (open_directory / "closed").mkdir(mode=0o700)
    (open_directory / "link").symlink_to(open_directory / "closed")
    with pytest.raises(PostgresUnavailableError, match=f"cannot enter '{open_directory}/closed'"):
        check_reachable(open_directory / "link", STRANGER)


@only_root
def test_everything_in_a_directory_is_given(open_directory: Path) -> None:
    (open_directory / "a" / "b").mkdir(parents=True)
    (open_directory / "a" / "file").touch()
    (open_directory / "kept").touch()
    (open_directory / "a" / "link").symlink_to(open_directory / "kept")
    give(open_directory / "a", STRANGER)
    for path in ("a", "a/b", "a/file", "a/link"):
        status = (open_directory / path).lstat()
        assert (status.st_uid, status.st_gid) == (54321, 54322)
    assert (open_directory / "kept").stat().st_uid == 0


@only_root
def test_single_file_is_given(open_directory: Path) -> None:
    (open_directory / "file").touch()
    give(open_directory / "file", STRANGER)
    assert (open_directory / "file").stat().st_uid == 54321
    assert open_directory.stat().st_uid == 0
