"""A short campaign of faults; ``make faults`` runs a long one."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[1]
FAULTS = 300


async def test_whatever_goes_wrong_each_caller_is_told_the_truth() -> None:
    campaign = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-m", "tests.faults.campaign"),
        *("--faults", str(FAULTS), "--seeds", "7", "--seconds-between-kills", "1.5"),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told = (await campaign.communicate())[0].decode()
    assert campaign.returncode == 0, told
    assert told.rstrip().endswith("0 violations")
    struck = {name: int(count) for name, count in re.findall(r"(?m)^(\S.*?)  +(\d+) ", told)}
    assert struck.pop("in all") >= FAULTS
    assert struck["the control plane is killed"] > 0
    assert len(struck) > 50
