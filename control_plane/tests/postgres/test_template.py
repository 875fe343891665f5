"""The template of new data directories."""

import asyncio
import errno
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from control_plane.tests.postgres.programs import write_installation, write_script
from control_plane.tests.postgres.server import copy_with_password, running
from neonctl_local.postgres import scratch
from neonctl_local.postgres import template as module
from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.cache import CHECKSUMS, is_intact
from neonctl_local.postgres.copying import copy_directory
from neonctl_local.postgres.errors import ClusterError, PostgresUnavailableError
from neonctl_local.postgres.template import (
    ADMINISTRATOR,
    Template,
    password_file,
    prepare_template,
)

pytestmark = pytest.mark.postgres

INITDB = """
if [ $1 = --show ]; then echo share_path=$(dirname $0); exit; fi
for option; do case $option in --pgdata=*) data=${option#*=};; esac; done
echo "$@" >> LOG
SCRIPT
umask 077
mkdir $data $data/global $data/pg_wal
echo 17 > $data/PG_VERSION
echo initdb > $data/pg_hba.conf
echo control > $data/global/pg_control
"""
MISSING_LOCALE = """case " $* " in *" --locale={} "*)
    mkdir $data
    echo "initdb: error: invalid locale name \\"{}\\""
    exit 1
esac"""

PREPARE = """
import os, sys
from pathlib import Path
from typing import Any
from neonctl_local.postgres.account import server_account
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.template import prepare_template
children = []
while len(children) < 3 and 0 not in children:
    children.append(os.fork())
installation = Installation(Path(sys.argv[1]), (17, 2))
directory = prepare_template(installation, server_account()).directory
os.write(1, f"{directory}\\n".encode())  # at once, unlike print
if 0 not in children:
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
"""


class FakePostgres:
    """An installation whose initdb is a script that records its options."""

    def __init__(self, root: Path, account: ServerAccount | None) -> None:
        self.installation = Installation(write_installation(root / "bin", "17.2"), (17, 2))
        self.log = root / "log"
        self.log.touch()
        self.log.chmod(0o666)
        self.account = account
        self.write_initdb()

    def write_initdb(self, script: str = "") -> None:
        """Let initdb run a script before it makes the data directory."""
        body = INITDB.replace("LOG", str(self.log)).replace("SCRIPT", script)
        write_script(self.installation.program("initdb"), body)

    @property
    def runs(self) -> list[str]:
        """The options of each run of initdb."""
        return self.log.read_text().splitlines()

    def prepare(self) -> Path:
        return prepare_template(self.installation, self.account).directory

    def prepare_in_processes(self) -> subprocess.Popen[str]:
        """Prepare the template in 4 processes, which fork from one."""
        command = [sys.executable, "-c", PREPARE, str(self.installation.directory)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


@pytest.fixture
def cache(open_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty cache of templates, which only this test uses."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(open_directory / "cache"))
    monkeypatch.setenv("TMPDIR", str(open_directory))
    monkeypatch.setattr("tempfile.tempdir", str(open_directory))
    return open_directory / "cache" / "neonctl-async" / "postgres"


@pytest.fixture
def postgres(cache: Path, open_directory: Path, account: ServerAccount | None) -> FakePostgres:
    """An installation with the settings of this test."""
    assert not cache.exists()
    return FakePostgres(open_directory, account)


def test_template_is_made_once(postgres: FakePostgres, cache: Path) -> None:
    directory = postgres.prepare()
    assert directory.is_relative_to(cache)
    assert is_intact(directory.parent)
    assert postgres.prepare() == directory
    assert len(postgres.runs) == 1
    assert {path.suffix for path in cache.iterdir()} == {directory.parent.suffix, ".lock"}


def test_options_of_initdb(postgres: FakePostgres) -> None:
    postgres.prepare()
    (options,) = postgres.runs
    for option in (
        "--username=cloud_admin",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale=C.UTF-8",
        "--lc-messages=C",
        "--wal-segsize=1",
    ):
        assert option in options.split()
    assert "checksums" not in options


def test_checksums_are_off_in_newer_versions(postgres: FakePostgres) -> None:
    newer = Installation(postgres.installation.directory, (18, 0))
    prepare_template(newer, postgres.account)
    assert "--no-data-checksums" in postgres.runs[0].split()


def test_template_is_private(postgres: FakePostgres) -> None:
    before = os.umask(0)
    try:
        directory = postgres.prepare()
    finally:
        os.umask(before)
    for path in (directory.parent, directory, *directory.rglob("*")):
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected
        assert path.stat().st_uid == os.geteuid()


def test_each_template_has_its_own_password(postgres: FakePostgres) -> None:
    first = password_file(postgres.prepare()).read_text()
    newer = Installation(postgres.installation.directory, (17, 3))
    second = password_file(prepare_template(newer, postgres.account).directory).read_text()
    assert len({first, second}) == 2
    assert min(len(first), len(second)) >= 40
    assert first not in "".join(postgres.runs)


def test_other_build_of_a_version_has_its_own_template(postgres: FakePostgres) -> None:
    first = postgres.prepare()
    with postgres.installation.program("postgres").open("a") as file:
        file.write("# another build\n")
    assert postgres.prepare() != first


@pytest.mark.parametrize(
    ("version", "missing", "expected"),
    [
        ((16, 9), ["C.UTF-8"], ["--locale=C"]),
        ((17, 2), ["C.UTF-8"], ["--locale=C", "--locale-provider=builtin"]),
        ((16, 9), [], ["--locale=C.UTF-8"]),
    ],
)
def test_missing_locale_is_replaced(
    postgres: FakePostgres, version: tuple[int, int], missing: list[str], expected: list[str]
) -> None:
    postgres.write_initdb("\n".join(MISSING_LOCALE.format(name, name) for name in missing))
    prepare_template(Installation(postgres.installation.directory, version), postgres.account)
    assert len(postgres.runs) == 1 + len(missing)
    assert set(expected) < set(postgres.runs[-1].split())


def test_machine_without_any_locale_is_an_error(postgres: FakePostgres) -> None:
    postgres.write_initdb("echo 'initdb: error: no locale'; exit 1")
    with pytest.raises(ClusterError, match="initdb failed with status 1: initdb: error: no locale"):
        postgres.prepare()
    assert len(postgres.runs) == 3


def test_error_of_initdb_has_its_last_lines(postgres: FakePostgres, cache: Path) -> None:
    postgres.write_initdb("echo locale C; seq 9; echo 'error: No space left on device' >&2; exit 1")
    with pytest.raises(ClusterError) as raised:
        postgres.prepare()
    assert str(raised.value) == (
        "initdb failed with status 1: 7 8 9 error: No space left on device"
    )
    assert [path.suffix for path in cache.iterdir()] == [".lock"]
    assert len(postgres.runs) == 1


def test_initdb_that_hangs_is_killed(
    postgres: FakePostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIME_LIMIT", 0.2)
    postgres.write_initdb("sleep 100")
    with pytest.raises(ClusterError, match=r"initdb did not finish within 0\.2 seconds"):
        postgres.prepare()


def test_initdb_that_cannot_be_started_is_an_error(postgres: FakePostgres) -> None:
    postgres.installation.program("initdb").chmod(0o600)
    with pytest.raises(ClusterError, match=r"initdb cannot be started.*: Permission denied"):
        postgres.prepare()


def test_user_without_a_name_is_an_error(
    postgres: FakePostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    users: dict[int, object] = {}
    monkeypatch.setattr("pwd.getpwuid", users.__getitem__)
    with pytest.raises(PostgresUnavailableError) as raised:
        prepare_template(postgres.installation, None)
    assert str(raised.value) == (
        f"Postgres needs the name of its user, and the user id {os.geteuid()} has none:"
        " add it to /etc/passwd, or start this program as a user that is there"
    )
    assert postgres.runs == []


def test_removed_installation_is_an_error(postgres: FakePostgres) -> None:
    postgres.installation.program("postgres").unlink()
    with pytest.raises(PostgresUnavailableError, match=r"Postgres is not in .* any more"):
        postgres.prepare()


@pytest.mark.parametrize("damaged", [CHECKSUMS, "data/PG_VERSION", "data/global/pg_control"])
def test_damaged_template_is_replaced(postgres: FakePostgres, damaged: str) -> None:
    directory = postgres.prepare()
    os.truncate(directory.parent / damaged, 1)
    assert postgres.prepare() == directory
    assert is_intact(directory.parent)
    assert len(postgres.runs) == 2


def test_failed_replacement_keeps_nothing_damaged_in_use(postgres: FakePostgres) -> None:
    directory = postgres.prepare()
    os.truncate(directory / "PG_VERSION", 1)
    postgres.write_initdb("exit 1")
    with pytest.raises(ClusterError):
        postgres.prepare()
    postgres.write_initdb()
    assert is_intact(postgres.prepare().parent)


def test_unwritable_cache_is_replaced(
    postgres: FakePostgres, cache: Path, open_directory: Path
) -> None:
    cache.parent.parent.write_text("no directory")
    directory = postgres.prepare()
    assert directory.is_relative_to(open_directory / f"neonctl-async-{os.geteuid()}")
    assert postgres.prepare() == directory
    assert len(postgres.runs) == 1


def test_entry_that_cannot_be_replaced_is_made_in_another_place(
    postgres: FakePostgres, open_directory: Path
) -> None:
    first = postgres.prepare()
    lock = first.parent.with_name(f"{first.parent.name}.lock")
    lock.unlink()
    lock.mkdir()
    os.truncate(first / "PG_VERSION", 1)
    second = postgres.prepare()
    assert second.is_relative_to(open_directory / f"neonctl-async-{os.geteuid()}")


def test_full_disk_of_the_cache_is_replaced(
    postgres: FakePostgres, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*arguments: Any, **options: Any) -> None:
        if arguments[1].is_relative_to(cache):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        copy_directory(*arguments, **options)

    monkeypatch.setattr(module, "copy_directory", write)
    assert postgres.prepare().is_relative_to(cache.parents[2] / f"neonctl-async-{os.geteuid()}")
    assert [path.suffix for path in cache.iterdir()] == [".lock"]


def test_machine_with_full_disks_is_an_error(
    postgres: FakePostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_arguments: Any, **_options: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module, "copy_directory", write)
    with pytest.raises(ClusterError) as raised:
        postgres.prepare()
    assert str(raised.value) == (
        "the template of new clusters cannot be stored: [Errno 28] No space left on device."
        " Free disk space, or set XDG_CACHE_HOME to another directory"
    )


def test_machine_without_a_directory_for_temporary_files_is_an_error(
    postgres: FakePostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr("tempfile.gettempdir", fail)
    with pytest.raises(ClusterError, match="cannot be stored: No usable temporary directory"):
        postgres.prepare()


def test_processes_that_start_together_make_one_template(postgres: FakePostgres) -> None:
    postgres.write_initdb("sleep 0.3")
    process = postgres.prepare_in_processes()
    output, _ = process.communicate()
    assert process.returncode == 0
    assert output.splitlines() == [str(postgres.prepare())] * 4
    assert len(postgres.runs) == 1


def test_killed_process_leaves_the_cache_usable(
    postgres: FakePostgres, open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "SHORTEST_AGE", 0.0)
    held = open_directory / "held"
    held.touch()
    postgres.write_initdb(f"while [ -e {held} ]; do sleep 0.01; done; exit 1")
    process = postgres.prepare_in_processes()
    while not postgres.runs:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    held.unlink()
    postgres.write_initdb()
    assert is_intact(postgres.prepare().parent)
    assert not list(open_directory.rglob("*.partial"))
    assert not list(open_directory.glob("neonctl-async-initdb-*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root uses another account for servers")
def test_unreachable_directories_are_named(
    postgres: FakePostgres, open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (open_directory / "closed").mkdir(mode=0o700)
    monkeypatch.setattr("tempfile.tempdir", str(open_directory / "closed"))
    with pytest.raises(PostgresUnavailableError, match=r"cannot enter .*closed' "):
        postgres.prepare()


async def test_server_runs_on_a_copy_of_the_template(
    installation: Installation,
    template: Template,
    open_directory: Path,
    account: ServerAccount | None,
) -> None:
    await asyncio.to_thread(
        copy_with_password, template.directory, open_directory / "copy", account=account
    )
    async with running(installation, open_directory / "copy", account) as connection:
        names = ("data_checksums", "wal_segment_size", "server_encoding", "timezone")
        settings = [await connection.fetchval(f"SHOW {name}") for name in names]
        assert settings == ["off", "1MB", "UTF8", "GMT"]
        assert await connection.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = user")
        rules = await connection.fetch("SELECT type, auth_method FROM pg_hba_file_rules")
        assert [tuple(rule) for rule in rules] == [("local", "scram-sha-256")]
        verifier = await connection.fetchval(
            "SELECT rolpassword FROM pg_authid WHERE rolname = $1", ADMINISTRATOR
        )
        assert verifier.startswith("SCRAM-SHA-256$1:"), "its logins take no time of the event loop"
