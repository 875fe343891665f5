"""Keeps the databases of a failed test for the time after the test run."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from neonctl_async.testing.plugin.backends import Backend


def keep_databases(item: "pytest.Item", backend: "Backend | None") -> list[str]:
    """Copy the databases of the branches that a test uses. Return lines for its report."""
    from neonctl_async.errors import NeonError
    from neonctl_async.testing.plugin.backends import DatabaseBackend

    if not isinstance(backend, DatabaseBackend):
        return []
    lines: list[str] = []
    for branch_id in dict.fromkeys(_branch_ids(item)):
        try:
            lines.append(f"{branch_id}: {backend.keep(branch_id)}")
        except (NeonError, OSError, RuntimeError, ValueError) as error:
            lines.append(f"{branch_id} is not kept: {error}")
    return lines


def _branch_ids(item: "pytest.Item") -> Iterator[str]:
    """Yield the ids of the branches that the fixtures of a test have created."""
    from neonctl_async.models.branches import BranchCreated
    from neonctl_async.testing.plugin.branches import BranchFactory

    values: dict[str, object] = getattr(item, "funcargs", {})
    for value in values.values():
        if isinstance(value, BranchCreated):
            yield value.branch.id
        elif isinstance(value, BranchFactory):
            yield from value.branch_ids
