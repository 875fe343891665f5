"""What branches of tests are called, so that those left behind are found."""

import os

PREFIX = "neonctl-pytest-"
LIFETIME_SECONDS = 3600
"""After so long the platform deletes a branch that nobody has deleted."""


def prefix_of_run(run: str) -> str:
    """How the names of all branches of a test run begin."""
    return f"{PREFIX}{run}-"


def prefix_of_worker(run: str) -> str:
    """How the names of those begin that this worker of pytest-xdist makes."""
    return f"{prefix_of_run(run)}{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
