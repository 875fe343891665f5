"""Short campaigns; ``make faults``, ``make kills`` and ``make soak`` run long ones."""

import asyncio
import random
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.campaigns import run_campaign
from tests.support.postgres import skip_without_postgres
from tests.support.server_process import Served
from tools.campaign.records import RECORD_FAULTS
from tools.campaign.report import Report, Run
from tools.campaign.requests import Requests, kill_servers

pytestmark = pytest.mark.scale


async def counts_of_campaign(*arguments: str) -> dict[str, int]:
    """Run a campaign without violations. Return how often each fault was injected."""
    output = await run_campaign("campaign", *arguments, "--seeds", "7")
    return {name: int(count) for name, count in re.findall(r"(?m)^(\S.*?)  +(\d+) ", output)}


@pytest.mark.process
async def test_calls_report_the_truth_under_every_fault() -> None:
    counts = await counts_of_campaign("requests", "--faults", "300", "--pause", "1.5")
    assert counts.pop("total") >= 300
    assert counts["the control plane is killed"] > 0
    assert len(counts) > 50


@pytest.mark.process
async def test_waits_report_the_truth_under_every_fault_of_records() -> None:
    names = ("record", "404 for", "failed")
    counts = await counts_of_campaign("requests", "--faults", "150", "--only", *names)
    assert len(counts.keys() & RECORD_FAULTS.keys()) >= 8  # some are drawn too rarely


@pytest.mark.process
async def test_killed_server_loses_nothing_and_repeats_nothing() -> None:
    counts = await counts_of_campaign("servers", "--faults", "3", "--pause", "0.1")
    assert counts == {"the control plane is killed": 3, "total": 3}


@pytest.mark.process
async def test_what_a_killed_server_has_lost_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose() -> None:
        with closing(sqlite3.connect(tmp_path / "plane.db")) as database, database:
            database.execute("DELETE FROM api_keys WHERE name LIKE 'c%'")

    async def kill(_requests: Requests, served: Served) -> None:
        await served.kill()
        await asyncio.to_thread(lose)

    monkeypatch.setattr(Requests, "_kill", kill)
    # On a slow machine, no call of 60 callers would get its response in time.
    monkeypatch.setattr("tools.campaign.requests.CALLERS", 5)
    report = Report()
    await kill_servers(Run(report, random.Random(7), tmp_path, faults=1, pause=0.2, names=()))
    assert "but [] exist" in "\n".join(report.violations)


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("kind", "faults", "killed"),
    [
        ("kills", 7, "control plane"),
        ("kills-recycled", 7, "guardian"),
        ("databases-history", 20, ""),
        ("databases-recycled", 20, ""),
    ],
)
async def test_killed_processes_and_faults_lose_nothing_and_leave_nothing_behind(
    kind: str, faults: int, killed: str
) -> None:
    await asyncio.to_thread(skip_without_postgres)
    counts = await counts_of_campaign(kind, "--faults", str(faults))
    assert counts.pop("total") >= faults
    assert not killed or killed in counts
