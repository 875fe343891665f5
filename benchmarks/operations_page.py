"""How long the local control plane takes for a page of operations, by how many are stored.

The curve should be flat, at the front of the list and in its middle.
"""

import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import aiohttp
from yarl import URL

from benchmarks.effort import Effort
from benchmarks.figures import OURS, Row, Target, row
from neonctl_async.local import Durations, LocalControlPlane
from neonctl_async.local.clock import exactly, utc_now
from neonctl_async.local.engine.operations import OperationChain
from neonctl_async.local.settings import Rules
from neonctl_async.local.storage.database import Database, Transaction
from neonctl_async.local.storage.tables import Operation

FEW = 10_000
LIMIT = 1_000
MOST_MILLISECONDS = 50.0
MOST_SLOWDOWN = 3.0
Times = dict[str, list[float]]


def fill(tx: Transaction, project_id: str, count: int) -> str:
    """Store operations until there are ``count``; answers a cursor in their middle."""
    stored = tx.number("SELECT count(*) FROM operations") or 0
    for _ in range(count - stored):
        OperationChain(tx, project_id).add("check_availability", branch_id="br-benchmark-1")
    where = "WHERE project_id = ? ORDER BY position LIMIT 1 OFFSET ?"
    return exactly(tx.select(Operation, where, project_id, count // 2)[0].position)


async def milliseconds(session: aiohttp.ClientSession, url: str, runs: int) -> list[float]:
    """What a page takes."""
    times: list[float] = []
    for _ in range(runs):
        began = time.perf_counter()
        async with session.get(URL(url, encoded=True)) as response:
            await response.read()
        times.append((time.perf_counter() - began) * 1000)
    return times


async def run(effort: Effort) -> list[Row]:
    """Fill a file, serve it and measure; fill it further."""
    runs = effort.of(thorough=15, quick=3)
    stored = effort.of(thorough=100_000, quick=30_000)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "plane.db"
        async with LocalControlPlane(data=data) as plane, aiohttp.ClientSession() as session:
            headers = {"Authorization": f"Bearer {plane.api_key}"}
            url = f"{plane.base_url}/projects"
            async with session.post(url, json={"project": {}}, headers=headers) as response:
                project_id = (await response.json())["project"]["id"]
        few = await curve(data, headers, project_id, FEW, runs)
        many = await curve(data, headers, project_id, stored, runs)
    return [compared(place, stored, many[place], few[place]) for place in many]


async def curve(
    data: Path, headers: dict[str, str], project_id: str, count: int, runs: int
) -> Times:
    """What pages take with ``count`` operations stored, by where they lie."""
    database = Database(data, utc_now, Rules(durations=Durations(default=0)))
    await database.open()
    middle = quote(await database.run(fill, project_id, count), safe="")
    await database.close()
    async with (
        LocalControlPlane(data=data) as plane,
        aiohttp.ClientSession(headers=headers) as session,
    ):
        url = f"{plane.base_url}/projects/{project_id}/operations?limit={LIMIT}"
        return {
            "front": await milliseconds(session, url, runs),
            "middle": await milliseconds(session, f"{url}&cursor={middle}", runs),
        }


def compared(place: str, stored: int, many: list[float], few: list[float]) -> Row:
    """The pages of one place, by how many operations are stored."""
    fewer = f"with {FEW:,} stored"
    return row(
        f"local control plane: {LIMIT:,} of {stored:,} operations, {place}",
        "a page over HTTP",
        "ms",
        {OURS: many, fewer: few},
        targets=[Target(MOST_MILLISECONDS), Target(MOST_SLOWDOWN, by=fewer)],
    )
