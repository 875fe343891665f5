"""The example of a test suite in which each test has its own branch."""

import shutil

import pytest

from tests.support.examples import EXAMPLES

pytestmark = [pytest.mark.process, pytest.mark.scale]


def test_suite_passes_offline_below_a_folder_with_foreign_settings(
    pytester: pytest.Pytester,
) -> None:
    shutil.copytree(EXAMPLES / "pytest_suite", pytester.path / "suite")
    pytester.makeini("[pytest]\naddopts = --strict-config\nof_a_plugin_not_installed = 1")
    result = pytester.runpytest_subprocess("-W", "error", "suite")
    assert (result.ret, result.parseoutcomes()) == (0, {"passed": 6})
