"""Fixtures with a branch that tests share."""

from typing import TYPE_CHECKING, Literal, TypeAlias

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from neonctl_async.types import BranchCreated
    from pytest_neonctl_async.backend import Backend, BranchFactory

Scope: TypeAlias = Literal["session", "package", "module", "class", "function"]


def branch_fixture(scope: Scope) -> object:
    """Return a fixture whose value is a new branch (``BranchCreated``) for each ``scope``.

    Assign it to a name in a module of tests or in ``conftest.py``, for example
    ``neon_branch = branch_fixture("module")``. The tests of the scope share the branch, so each
    test finds what earlier tests have written. With ``"session"``, each pytest-xdist worker has a
    branch, because a worker is a session of its own.
    """
    if scope == "function":
        return pytest.fixture(_branch_of_one_test)
    return pytest.fixture(scope=scope)(_shared_branch)


def _branch_of_one_test(neon_branch_factory: "BranchFactory") -> "BranchCreated":
    """Create a branch for the test. It is deleted after the test."""
    return neon_branch_factory.create()


def _shared_branch(
    request: pytest.FixtureRequest, _neon_backend: "Backend"
) -> "Generator[BranchCreated, None, None]":
    """Create a branch that tests share. It is deleted after the last of these tests."""
    with _neon_backend.shared_branch(until_end=request.scope == "session") as created:
        yield created
