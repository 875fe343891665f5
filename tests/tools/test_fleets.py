"""A short campaign that kills the process of a fleet; ``make soak`` runs a long one."""

import pytest

from tools.fleets import Size, campaign

pytestmark = [pytest.mark.process, pytest.mark.scale]


async def test_each_tenant_has_one_branch_after_faults_and_kills() -> None:
    run = await campaign(
        Size(200, 10, per_minute=60_000), kills=3, seed=1, duration=0.1, rate_limits=False
    )
    assert run.violations == []
    assert sum("killed" in line for line in run.runs) >= 2
