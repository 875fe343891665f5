"""Extensions that each role may create, as on Neon."""

import logging
from pathlib import Path

import pytest

from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.servers.extensions import TRUSTED, TrustedExtensions
from tests.support.clusters import asyncpg, execute, fetch


def write_installation(root: Path, program: str, *extensions: str) -> Installation:
    """Write an installation with the places of Debian."""
    directory, shared = root / "lib/postgresql/17/bin", root / "share/postgresql/17/extension"
    for path in (directory, shared, root / "lib/postgresql/17/lib"):
        path.mkdir(parents=True)
    (directory / "postgres").write_text(program)
    (directory / "postgres").chmod(0o755)
    for name in extensions:
        (shared / f"{name}.control").write_text("relocatable = true")
        (shared / f"{name}--1.0.sql").write_text("SELECT 1;")
    return Installation(directory, (17, 1))


@pytest.mark.process
def test_copy_of_the_program_finds_trusted_control_files(tmp_path: Path) -> None:
    original = write_installation(tmp_path / "usr", "#!/bin/sh", "vector", "dblink")
    program = TrustedExtensions(tmp_path / "copies", None).program(original)
    copy = tmp_path / "copies/17"
    assert program == copy / "lib/postgresql/17/bin/postgres"
    assert not program.is_symlink()
    controls = copy / "share/postgresql/17/extension"
    assert (controls / "vector.control").read_text() == "relocatable = true\ntrusted = true\n"
    assert (controls / "dblink.control").read_text() == "relocatable = true"
    assert (controls / "vector--1.0.sql").read_text() == "SELECT 1;"
    assert (copy / "lib/postgresql/17/lib").is_symlink()


@pytest.mark.process
def test_scripts_permit_what_neon_permits(tmp_path: Path) -> None:
    original = write_installation(tmp_path / "usr", "#!/bin/sh", "pg_stat_statements")
    script = Path("share/postgresql/17/extension/pg_stat_statements--1.0.sql")
    revoked = "REVOKE ALL ON FUNCTION pg_stat_statements_reset(Oid, boolean) FROM PUBLIC;"
    (tmp_path / "usr" / script).write_text(f"-- first\n{revoked}\n-- last\n")
    TrustedExtensions(tmp_path / "copies", None).program(original)
    granted = "GRANT EXECUTE ON FUNCTION pg_stat_statements_reset(Oid, boolean) TO neon_superuser;"
    changed = (tmp_path / "copies/17" / script).read_text()
    assert changed == f"-- first\n{revoked}\n{granted}\n-- last\n"


def test_installation_without_such_extensions_is_not_copied(tmp_path: Path) -> None:
    original = write_installation(tmp_path / "usr", "#!/bin/sh", "dblink")
    program = TrustedExtensions(tmp_path / "copies", None).program(original)
    assert program == original.program("postgres")
    assert not (tmp_path / "copies").exists()


@pytest.mark.process
def test_program_is_used_itself_if_its_copy_does_not_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    original = write_installation(tmp_path / "usr", "not a program", "vector")
    program = TrustedExtensions(tmp_path / "copies", None).program(original)
    assert program == original.program("postgres")
    assert "Postgres 17 trusts no more extensions: " in caplog.text


@pytest.mark.postgres
async def test_role_creates_each_installed_extension_that_neon_permits(
    clusters: Clusters, main: str
) -> None:
    available = "SELECT DISTINCT name FROM pg_available_extension_versions WHERE trusted"
    names = [str(name) for name in await fetch(clusters, main, available)]
    assert set(names) & TRUSTED
    await execute(
        clusters, main, *(f'CREATE EXTENSION IF NOT EXISTS "{name}" CASCADE' for name in names)
    )
    installed = await fetch(clusters, main, "SELECT extname FROM pg_extension")
    assert set(names) <= set(installed)
    with pytest.raises(asyncpg.FeatureNotSupportedError):
        await execute(clusters, main, "CREATE EXTENSION missing")
