"""A page of operations from the local control plane, with few and with many stored.

The response time should not depend on the number of stored operations, at the start of the list
and in its middle.
"""

import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import aiohttp
from yarl import URL

from benchmarks.harness.results import OURS, Row, Target, make_row
from benchmarks.harness.run_size import RunSize
from neonctl_local import Durations, LocalControlPlane
from neonctl_local.clock import exactly, utc_now
from neonctl_local.engine.operations import OperationChain
from neonctl_local.settings import Rules
from neonctl_local.storage.database import Database
from neonctl_local.storage.tables import Operation
from neonctl_local.storage.transactions import Transaction

FEW = 10_000
PAGE = 1_000
MAX_MILLISECONDS = 50.0
MAX_SLOWDOWN = 3.0
Times = dict[str, list[float]]


def fill(tx: Transaction, project_id: str, count: int) -> str:
    """Store operations until there are ``count``; return a cursor in their middle."""
    stored = tx.number("SELECT count(*) FROM operations") or 0
    for _ in range(count - stored):
        OperationChain(tx, project_id).add("check_availability", branch_id="br-benchmark-1")
    where = "WHERE project_id = ? ORDER BY position LIMIT 1 OFFSET ?"
    return exactly(tx.select(Operation, where, project_id, count // 2)[0].position)


async def milliseconds(session: aiohttp.ClientSession, url: str, runs: int) -> list[float]:
    """Return the response times of a page."""
    times: list[float] = []
    for _ in range(runs):
        started = time.perf_counter()
        async with session.get(URL(url, encoded=True)) as response:
            await response.read()
        times.append((time.perf_counter() - started) * 1000)
    return times


async def run(size: RunSize) -> list[Row]:
    """Measure with few operations in a file, then with many in the same file."""
    runs = size.pick(full=15, quick=3)
    count = size.pick(full=100_000, quick=30_000)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.db"
        async with (
            LocalControlPlane(data=data) as control_plane,
            aiohttp.ClientSession() as session,
        ):
            headers = {"Authorization": f"Bearer {control_plane.api_key}"}
            url = f"{control_plane.base_url}/projects"
            async with session.post(url, json={"project": {}}, headers=headers) as response:
                project_id = (await response.json())["project"]["id"]
        few = await measure(data, headers, project_id, FEW, runs)
        many = await measure(data, headers, project_id, count, runs)
    return [compare(place, count, many[place], few[place]) for place in many]


async def measure(
    data: Path, headers: dict[str, str], project_id: str, count: int, runs: int
) -> Times:
    """Return the response times with ``count`` operations stored, by the place of the page."""
    database = Database(data, utc_now, Rules(durations=Durations(default=0)))
    await database.open()
    middle = quote(await database.run(fill, project_id, count), safe="")
    await database.close()
    async with (
        LocalControlPlane(data=data) as control_plane,
        aiohttp.ClientSession(headers=headers) as session,
    ):
        url = f"{control_plane.base_url}/projects/{project_id}/operations?limit={PAGE}"
        return {
            "at the start": await milliseconds(session, url, runs),
            "in the middle": await milliseconds(session, f"{url}&cursor={middle}", runs),
        }


def compare(place: str, count: int, many: list[float], few: list[float]) -> Row:
    """Return the row of one place."""
    fewer = f"{FEW:,} operations"
    return make_row(
        f"local control plane, {count:,} operations",
        f"page of {PAGE:,} {place}",
        "ms",
        {OURS: many, fewer: few},
        targets=[Target(MAX_MILLISECONDS), Target(MAX_SLOWDOWN, relative_to=fewer)],
    )
