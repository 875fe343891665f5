"""The example of a suite that moved from a shared database to a database for each test."""

import asyncio
import shutil
from pathlib import Path

import pytest

from neonctl_async import NeonClient
from neonctl_local import Durations, LocalControlPlane
from tests.support.examples import EXAMPLES
from tests.support.postgres import CACHE, skip_without_postgres

pytestmark = pytest.mark.postgres


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the suite. Alembic imports it from the parent directory of the copy."""
    skip_without_postgres()
    monkeypatch.setenv("XDG_CACHE_HOME", CACHE)
    copy = pytester.path / "sqlalchemy_suite"
    shutil.copytree(EXAMPLES / "sqlalchemy_suite", copy)
    return copy


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.scale)])
def test_suite_passes_after_the_move(workers: int, pytester: pytest.Pytester, suite: Path) -> None:
    result = pytester.runpytest_subprocess("-W", "error", "-n", str(workers), str(suite))
    assert (result.ret, result.parseoutcomes()) == (0, {"passed": 4})


async def test_suite_passed_before_the_move(
    pytester: pytest.Pytester, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.to_thread((suite / "conftest_before.py").replace, suite / "conftest.py")
    async with (
        LocalControlPlane(postgres=True, durations=Durations(default=0)) as server,
        NeonClient(server.api_key, base_url=server.base_url) as neon,
    ):
        shared = await neon.projects.create(wait=True)
        url = shared.connection_uri.sqlalchemy("asyncpg")
        monkeypatch.setenv("TEST_DATABASE_URL", url)
        options = ("-W", "error", "-o", "neon_postgres=false", str(suite))
        result = await asyncio.to_thread(pytester.runpytest_subprocess, *options)
    assert (result.ret, result.parseoutcomes()) == (0, {"passed": 4})
