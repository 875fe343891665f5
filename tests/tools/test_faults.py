"""A short fault campaign; ``make faults`` runs a long one."""

import asyncio
import re

import pytest

from tests.support.campaigns import run_campaign
from tests.support.postgres import skip_without_postgres
from tools.faults import campaign, databases, mixed
from tools.faults.records import RECORD_FAULTS

FAULTS = 300


async def counts_of_campaign(*arguments: str) -> dict[str, int]:
    """Run a campaign without violations. Return how often each fault was injected."""
    output = await run_campaign("faults", "--seeds", "7", *arguments)
    return {name: int(count) for name, count in re.findall(r"(?m)^(\S.*?)  +(\d+) ", output)}


@pytest.mark.process
@pytest.mark.scale
async def test_calls_report_the_truth_under_every_fault() -> None:
    counts = await counts_of_campaign(
        *("--faults", str(FAULTS), "--seconds-between-kills", "1.5", "--only", *mixed.NAMES)
    )
    assert counts.pop("total") >= FAULTS
    assert counts["the control plane is killed"] > 0
    assert len(counts) > 50


@pytest.mark.process
@pytest.mark.scale
async def test_waits_report_the_truth_under_every_fault_of_records() -> None:
    names = ("record", "404 for", "failed")
    counts = await counts_of_campaign("--faults", str(FAULTS // 2), "--only", *names)
    assert len(counts.keys() & RECORD_FAULTS.keys()) >= 8  # some are drawn too rarely


@pytest.mark.process
@pytest.mark.scale
async def test_calls_succeed_despite_faults_that_execute_nothing() -> None:
    others = {*mixed.NAMES, *databases.DATABASES}
    names = [name for name in campaign.NAMES if name not in others]
    counts = await counts_of_campaign("--only", *names)
    assert counts.keys() == {*names, "total"}


@pytest.mark.postgres
@pytest.mark.scale
async def test_databases_have_the_rows_of_their_parents_despite_faults() -> None:
    await asyncio.to_thread(skip_without_postgres)
    counts = await counts_of_campaign("--faults", "1600", "--only", *databases.DATABASES)
    assert counts.keys() == {*databases.DATABASES, "total"}
