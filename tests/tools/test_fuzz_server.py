"""The fuzzer of the HTTP side, with a few inputs; make fuzz runs more."""

import asyncio

import pytest

from neonctl_async.testing import FakeClockLoop
from neonctl_local.server.tenants.state import TenantState
from tools.fuzz.server.__main__ import an_input
from tools.fuzz.server.exchange import ViolationError, exchanges

INPUTS = 300


async def run_inputs() -> dict[int, int]:
    async with exchanges() as running:
        for number in range(INPUTS):
            await running.run(an_input(0, number))
        return running.statuses


async def run_inputs_on_a_broken_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a defect")

    async with exchanges() as running:
        await running.run(an_input(0, 0))
        monkeypatch.setattr(TenantState, "note", broken)
        for number in range(1, 20):
            await running.run(an_input(0, number))


@pytest.mark.long
def test_inputs_of_a_seed_violate_nothing_and_reach_the_handlers() -> None:
    with asyncio.Runner(loop_factory=FakeClockLoop) as runner:
        statuses = runner.run(run_inputs())
    assert {200, 201, 400, 401, 404, 408, 501} <= statuses.keys()


def test_fuzzer_finds_an_error_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    with asyncio.Runner(loop_factory=FakeClockLoop) as runner:
        with pytest.raises(ViolationError, match="the status is 500"):
            runner.run(run_inputs_on_a_broken_server(monkeypatch))
