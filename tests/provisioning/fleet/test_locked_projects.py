"""Neon locks a project (423) while it creates a branch. A fleet waits longer than the client."""

from collections.abc import AsyncIterator

import pytest

from neonctl_async import LockedError, NeonClient
from neonctl_async.provisioning.fleet import Fleet, steps
from neonctl_async.testing import loop_clock
from neonctl_local import Durations, Fault, LocalControlPlane
from tests.provisioning.fleet.records import tenant
from tests.provisioning.helpers import CREATE
from tests.support.clock import now

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def control_plane() -> AsyncIterator[LocalControlPlane]:
    """A local control plane that creates one branch of a project at a time, in 10 seconds."""
    async with LocalControlPlane(
        durations=Durations(default=5), lock="project", clock=loop_clock()
    ) as control_plane:
        yield control_plane


@pytest.fixture
async def neon(control_plane: LocalControlPlane) -> AsyncIterator[NeonClient]:
    """A client with the default retry policy."""
    async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
        yield neon


async def test_last_tenant_of_a_locked_project_waits_for_all_others(neon: NeonClient) -> None:
    fleet = [tenant(f"b-{number}", region="aws-us-east-2") for number in range(20)]
    report = await Fleet(neon, fleet).apply()
    assert report.failed == {}
    assert now() > 20 * 10


async def test_project_that_stays_locked_fails_its_tenants(
    neon: NeonClient, control_plane: LocalControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "MAX_LOCKED_SECONDS", 90.0)
    await neon.projects.create(name="acme", wait=True)
    control_plane.inject(Fault(route=CREATE, status=423))
    report = await Fleet(neon, [tenant("b-1")]).apply()
    assert isinstance(report.failed[tenant("b-1")], LockedError)
    assert 90 < now() < 200
