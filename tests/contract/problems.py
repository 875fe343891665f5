"""The failure message of the contract tests: each problem on its own line."""

from collections.abc import Iterable

import pytest


def assert_none(subject: object, problems: Iterable[str]) -> None:
    """Fail without a traceback if there are problems, and print one per line."""
    lines = sorted(problems)
    if lines:
        pytest.fail("\n  ".join([f"{subject}:", *lines]), pytrace=False)
