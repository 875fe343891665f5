"""Extensions that each role may create, as at Neon."""

from pathlib import Path

import pytest

from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.servers.extensions import trust_extensions
from tests.support.clusters import asyncpg, execute, fetch


def test_copy_of_the_control_file_is_trusted_and_names_the_scripts(tmp_path: Path) -> None:
    scripts = tmp_path / "it's" / "share" / "postgresql" / "extension"
    scripts.mkdir(parents=True)
    (scripts / "vector.control").write_text("relocatable = true")
    versions = [Installation(tmp_path / "it's" / "bin", (major, 1)) for major in (18, 17)]
    path = tmp_path / "e"
    assert trust_extensions(versions, path, None) == {18: f"{path}/18:$system"}
    assert (path / "18" / "extension" / "vector.control").read_text().splitlines() == [
        "relocatable = true",
        f"directory = '{scripts}'".replace("it's", "it''s"),
        "trusted = true",
    ]


def test_version_without_such_extensions_has_no_path(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "bin", (99, 0))
    assert trust_extensions([installation], tmp_path / "e", None) == {}
    assert not (tmp_path / "e").exists()


@pytest.mark.postgres
async def test_role_creates_the_extension_vector(clusters: Clusters, main: str) -> None:
    available = "SELECT name FROM pg_available_extensions WHERE name = 'vector'"
    [version] = await fetch(clusters, main, "SHOW server_version_num")
    if int(version) < 180000 or not await fetch(clusters, main, available):
        pytest.skip("this Postgres cannot mark the extension vector as trusted, or has none")
    await execute(clusters, main, "CREATE EXTENSION vector", "CREATE TABLE t (place vector(2))")
    await execute(clusters, main, "INSERT INTO t VALUES ('[3,4]')")
    assert await fetch(clusters, main, "SELECT place <-> '[0,0]' FROM t") == [5]
    with pytest.raises(asyncpg.FeatureNotSupportedError):
        await execute(clusters, main, "CREATE EXTENSION missing")
