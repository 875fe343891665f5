"""Keeps the databases of a failed test for the time after the test run."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from neonctl_async.testing.plugin.backends import Backend


def keep_databases(item: "pytest.Item", backend: "Backend | None") -> list[str]:
    """Copy the databases of the branches that a test uses. Return a line for each."""
    from neonctl_async.errors import NeonError
    from neonctl_async.testing.plugin.backends import DatabaseBackend

    if not isinstance(backend, DatabaseBackend):
        return []
    lines: list[str] = []
    for branch_id, name in _branches(item).items():
        try:
            lines.append(f"{name}: {backend.keep(branch_id)}")
        except (NeonError, OSError, RuntimeError, ValueError) as error:
            lines.append(f"{name} is not kept: {error}")
    return lines


def _branches(item: "pytest.Item") -> dict[str, str]:
    """Return the ids of the branches of a test, with their fixtures, or again their ids."""
    from neonctl_async.models.branches import BranchCreated
    from neonctl_async.testing.plugin.branches import BranchFactory

    branches: dict[str, str] = {}
    values: dict[str, object] = getattr(item, "funcargs", {})
    for name, value in values.items():
        if isinstance(value, BranchCreated):
            branches[value.branch.id] = name
        elif isinstance(value, BranchFactory):
            branches = {branch_id: branch_id for branch_id in value.branch_ids} | branches
    return branches
