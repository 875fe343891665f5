"""Fixtures of the conformance run."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from tests.contract.description import Description

if TYPE_CHECKING:
    from control_plane.tests.conformance.published.run import Run

# Only the environments of make conformance and make check contain schemathesis.
collect_ignore_glob = [] if find_spec("schemathesis") else ["test_*.py"]


@pytest.fixture(scope="session")
def description() -> Description:
    return Description.newest()


@pytest.fixture(scope="session")
def run(description: Description) -> "Iterator[Run]":
    """Schemathesis, with one local control plane for all tests of a process."""
    from control_plane.tests.conformance.published.run import started_run  # noqa: PLC0415 - schemathesis may be missing

    with started_run(description) as run:
        yield run
