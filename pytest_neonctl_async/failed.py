"""Keeps the databases of a failed test for the time after the test run."""

from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from neonctl_async.models.branches import BranchCreated
    from neonctl_async.testing.plugin.backends import Backend

DJANGO_BRANCH: Final = "neon_django_branch"
"""The fixture with the branch of Django's databases, which tests often request by a marker."""
DJANGO_BRANCH_KEY: "pytest.StashKey[BranchCreated]" = pytest.StashKey()


def keep_databases(item: pytest.Item, backend: "Backend | None") -> list[str]:
    """Copy the databases of the branches that a test uses. Return a line for each."""
    from neonctl_async.errors import NeonError
    from neonctl_async.testing.plugin.backends import DatabaseBackend

    if not isinstance(backend, DatabaseBackend):
        return []
    lines: list[str] = []
    for branch_id, name in _branches(item).items():
        database = _django_database() if name == DJANGO_BRANCH else None
        try:
            lines.append(f"{name}: {backend.keep(branch_id, database)}")
        except (NeonError, OSError, RuntimeError, ValueError) as error:
            lines.append(f"{name} is not kept: {error}")
    return lines


def _django_database() -> str:
    from django.db import DEFAULT_DB_ALIAS, connections

    name: str = connections[DEFAULT_DB_ALIAS].settings_dict["NAME"]
    return name


def _branches(item: pytest.Item) -> dict[str, str]:
    """Return the ids of the branches of a test, with their fixtures, or again their ids."""
    from neonctl_async.models.branches import BranchCreated
    from neonctl_async.testing.plugin.branches import BranchFactory

    branches: dict[str, str] = {}
    values: dict[str, object] = dict(getattr(item, "funcargs", {}))
    django_branch = item.config.stash.get(DJANGO_BRANCH_KEY, None)
    if item.get_closest_marker("django_db") or hasattr(getattr(item, "cls", None), "databases"):
        values[DJANGO_BRANCH] = django_branch
    for name, value in values.items():
        if isinstance(value, BranchCreated):
            branches[value.branch.id] = name
        elif isinstance(value, BranchFactory):
            branches = {branch_id: branch_id for branch_id in value.branch_ids} | branches
    return branches
