"""The fuzzer of the HTTP side, with a few inputs; make fuzz runs more."""

import asyncio
from functools import partial

import pytest

from neonctl_async.local.server.tenant_state import TenantState
from neonctl_async.testing import FakeClockLoop
from tools.fuzz.server.__main__ import an_input
from tools.fuzz.server.exchange import ViolationError, exchanges

INPUTS = 200


async def run_inputs() -> dict[int, int]:
    async with exchanges() as running:
        for number in range(INPUTS):
            await running.run(an_input(0, number))
        return running.statuses


def run() -> dict[int, int]:
    with asyncio.Runner(loop_factory=partial(FakeClockLoop, grace=0)) as runner:
        return runner.run(run_inputs())


def test_inputs_of_a_seed_violate_nothing_and_reach_the_handlers() -> None:
    statuses = run()
    assert {200, 201, 400, 401, 404, 408, 501} <= statuses.keys()


def test_fuzzer_finds_an_error_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(TenantState, "note", broken)
    with pytest.raises((ViolationError, ValueError)):
        run()
