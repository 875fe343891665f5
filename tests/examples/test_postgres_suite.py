"""The example of a test suite in which each test has its own database."""

import shutil

import pytest

from tests.support.examples import EXAMPLES
from tests.support.postgres import copy_cache, skip_without_postgres

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.scale)])
def test_suite_passes_offline(
    workers: int, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without_postgres()
    monkeypatch.setenv("XDG_CACHE_HOME", copy_cache(pytester.path))
    shutil.copytree(EXAMPLES / "postgres_suite", pytester.path / "suite")
    result = pytester.runpytest_subprocess("-W", "error", "-n", str(workers), "suite")
    assert (result.ret, result.parseoutcomes()) == (0, {"passed": 7})
