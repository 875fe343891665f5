"""A short fault campaign; ``make faults`` runs a long one."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAULTS = 300


@pytest.mark.process
async def test_calls_report_the_truth_under_every_fault() -> None:
    campaign = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-m", "tools.faults"),
        *("--faults", str(FAULTS), "--seeds", "7", "--seconds-between-kills", "1.5"),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output = (await campaign.communicate())[0].decode()
    assert campaign.returncode == 0, output
    assert output.rstrip().endswith("0 violations")
    counts = {name: int(count) for name, count in re.findall(r"(?m)^(\S.*?)  +(\d+) ", output)}
    assert counts.pop("total") >= FAULTS
    assert counts["the control plane is killed"] > 0
    assert len(counts) > 50
