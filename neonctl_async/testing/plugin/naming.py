"""Names of the branches that tests create, so that a later sweep can find them."""

import os

PREFIX = "neonctl-pytest-"
LIFETIME_SECONDS = 3600
"""The age at which Neon deletes a branch that no test has deleted."""


def run_prefix(run_id: str) -> str:
    """Return the prefix of all branch names of a test run."""
    return f"{PREFIX}{run_id}-"


def worker_prefix(run_id: str) -> str:
    """Return the prefix of the branch names of this worker of pytest-xdist."""
    return f"{run_prefix(run_id)}{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
