"""A local control plane with fast operations, and a client for it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from neonctl_async import NeonClient, PollPolicy, RateBudget, RetryPolicy
from neonctl_local import Durations, LocalControlPlane


@pytest.fixture
async def control_plane(request: pytest.FixtureRequest) -> AsyncIterator[LocalControlPlane]:
    marker = request.node.get_closest_marker("control_plane")
    settings: dict[str, Any] = marker.kwargs if marker else {}
    async with LocalControlPlane(durations=Durations(default=0.01), **settings) as control_plane:
        yield control_plane


@pytest.fixture
async def neon(control_plane: LocalControlPlane) -> AsyncIterator[NeonClient]:
    async with NeonClient(
        control_plane.api_key,
        base_url=control_plane.base_url,
        budget=RateBudget.unlimited(),
        polling=PollPolicy(initial=0.02, failed_grace=0.05),
        retry=RetryPolicy(initial=0.02),
    ) as neon:
        yield neon


@pytest.fixture
async def project_id(neon: NeonClient) -> str:
    return (await neon.projects.create(wait=True)).project.id
