"""Names of the branches that tests create, so that a later sweep can find them."""

import os

PREFIX = "neonctl-pytest-"
LIFETIME_SECONDS = 3600
"""The age at which Neon deletes a branch that no test has deleted."""
RUN_LIFETIME_SECONDS = 24 * 3600
"""The lifetime of branches that a whole test run may need: the parent, and shared branches."""
_PARENT = "-parent-"
_SHARED = "-shared"


def run_prefix(run_id: str) -> str:
    """Return the prefix of all branch names of a test run."""
    return f"{PREFIX}{run_id}-"


def worker_prefix(run_id: str) -> str:
    """Return the prefix of the branch names of this pytest-xdist worker."""
    return f"{run_prefix(run_id)}{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"


def parent_prefix(run_id: str) -> str:
    """Return the name prefix of the branch that this worker migrates."""
    return f"{worker_prefix(run_id)}{_PARENT}"


def shared_prefix(prefix: str) -> str:
    """Return the name prefix of the branches that the tests of a worker share."""
    return f"{prefix}{_SHARED}"


def lifetime_seconds(name: str) -> int:
    """Return the age at which a test run deletes another run's branch with this name."""
    needed_for_long = _PARENT in name or f"{_SHARED}-" in name
    return RUN_LIFETIME_SECONDS if needed_for_long else LIFETIME_SECONDS


def is_parent(name: str) -> bool:
    """Return whether a branch with this name is the parent of all branches of a test run."""
    return name.startswith(PREFIX) and _PARENT in name
