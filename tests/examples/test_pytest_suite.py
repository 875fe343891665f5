"""The example of a test suite in which each test has a branch of its own."""

import shutil

import pytest

from tests.support.examples import EXAMPLES


def test_it_passes_offline_wherever_it_lies(pytester: pytest.Pytester) -> None:
    shutil.copytree(EXAMPLES / "pytest_suite", pytester.path / "suite")
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    result = pytester.runpytest_subprocess("-W", "error")
    assert (result.ret, result.parseoutcomes()) == (0, {"passed": 6})
