"""Test suites outside the package, run as users run them."""

from collections.abc import Callable
from typing import TypeAlias

import pytest

RunSuite: TypeAlias = Callable[..., pytest.RunResult]


@pytest.fixture
def run_suite(pytester: pytest.Pytester) -> RunSuite:
    """Runs the test files of ``pytester``, with warnings as errors, in the order of definition."""
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")

    def run(*options: str) -> pytest.RunResult:
        return pytester.runpytest_subprocess("-W", "error", "-p", "no:randomly", *options)

    return run
