"""How long a page of operations takes, by how many are stored: the curve should be flat.

``python benchmarks/operations_page.py`` fills a file, serves it, and measures pages of 100 and of
1,000 operations, over HTTP: at the front of the list, and from its middle. It fails where the
median page of 1,000 takes 50 ms or more, or where a page is three times as slow with 100,000
operations stored as with 10,000.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import aiohttp
from yarl import URL

from neonctl_async.local import Durations, LocalControlPlane
from neonctl_async.local.clock import exactly, utc_now
from neonctl_async.local.database import Database, Transaction
from neonctl_async.local.operations import Chain
from neonctl_async.local.rows import Operation
from neonctl_async.local.settings import Rules

STORED = (100, 1_000, 10_000, 100_000)
LIMITS = (100, 1_000)
ROUNDS = 15
MOST_MILLISECONDS = 50.0
MOST_SLOWDOWN = 3.0


def fill(tx: Transaction, project_id: str, count: int) -> str:
    """Store operations until there are ``count``; answers a cursor in their middle."""
    stored = tx.number("SELECT count(*) FROM operations") or 0
    for _ in range(count - stored):
        Chain(tx, project_id).add("check_availability", branch_id="br-benchmark-1")
    where = "WHERE project_id = ? ORDER BY position LIMIT 1 OFFSET ?"
    return exactly(tx.select(Operation, where, project_id, count // 2)[0].position)


async def measure(session: aiohttp.ClientSession, url: str) -> float:
    """The median time of a page, in milliseconds."""
    times: list[float] = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        async with session.get(URL(url, encoded=True)) as response:
            await response.read()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


async def run(data: Path) -> bool:
    """Print the curve; answers whether it is good."""
    good = True
    first: dict[str, float] = {}
    async with LocalControlPlane(data=data) as plane, aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {plane.api_key}"}
        url = f"{plane.base_url}/projects"
        async with session.post(url, json={"project": {}}, headers=headers) as response:
            project_id = (await response.json())["project"]["id"]
    print(f"{'stored':>8} {'limit':>6} {'front, ms':>10} {'middle, ms':>11}")
    for count in STORED:
        database = Database(data, utc_now, Rules(durations=Durations(default=0)))
        await database.open()
        middle = quote(await database.run(fill, project_id, count), safe="")
        await database.close()
        async with (
            LocalControlPlane(data=data) as plane,
            aiohttp.ClientSession(headers=headers) as session,
        ):
            url = f"{plane.base_url}/projects/{project_id}/operations"
            for limit in LIMITS:
                times = {
                    "front": await measure(session, f"{url}?limit={limit}"),
                    "middle": await measure(session, f"{url}?limit={limit}&cursor={middle}"),
                }
                print(f"{count:8} {limit:6} {times['front']:10.1f} {times['middle']:11.1f}")
                for place, milliseconds in times.items():
                    if count >= 2 * max(LIMITS):
                        page = f"{place} {limit}"
                        slowdown = milliseconds / first.setdefault(page, milliseconds)
                        good &= slowdown < MOST_SLOWDOWN and milliseconds < MOST_MILLISECONDS
    return good


def main() -> int:
    """Run the benchmark; answers 1 where a page is too slow."""
    with tempfile.TemporaryDirectory() as directory:
        good = asyncio.run(run(Path(directory) / "plane.db"))
    print("flat" if good else "too slow")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
