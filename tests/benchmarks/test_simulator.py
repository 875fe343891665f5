"""The simulated control plane of the benchmarks."""

import pytest

from benchmarks.servers.control_plane import CREATE, Settings
from benchmarks.servers.simulator_process import SimulatorProcess
from neonctl_async import NeonClient, OperationFailedError


@pytest.mark.process
async def test_name_of_a_branch_determines_its_operations() -> None:
    async with (
        SimulatorProcess(Settings()) as server,
        NeonClient("napi_test", base_url=server.base_url) as neon,
    ):
        created = await neon.branches.create("p", name="branch 0.25 0.5!")
        with pytest.raises(OperationFailedError) as failed:
            await neon.operations.wait(created)
        report = await server.report()
    succeeding, failing = created.operations
    assert [one.id for one in failed.value.failed] == [failing.id]
    assert report.finishes[failing.id] - report.finishes[succeeding.id] == pytest.approx(0.5)
    assert report.count(CREATE) == 1
    assert report.count() == 1 + len(report.polls()["p"])
