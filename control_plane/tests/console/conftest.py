"""A person who is signed in to the console."""

from collections.abc import AsyncIterator

import pytest

from control_plane.tests.console.visitor import Visitor, visiting
from neonctl_local import LocalControlPlane


@pytest.fixture
async def visitor(control_plane: LocalControlPlane) -> AsyncIterator[Visitor]:
    """The first user of the local control plane ``control_plane``, signed in."""
    async with visiting(control_plane) as visitor:
        yield visitor
