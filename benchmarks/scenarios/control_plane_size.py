"""Response times of a local control plane with 10,000 keys, 1,000 projects, 100,000 operations.

Each request is measured alone, and beside 50 clients that poll and read long lists.
"""

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import aiohttp

from benchmarks.harness.results import OURS, Row, Target, make_row
from benchmarks.harness.run_size import RunSize
from benchmarks.servers.large_control_plane import LargeControlPlane, Sizes, large_control_plane
from benchmarks.servers.many_clients import many_clients

ALONE, BESIDE = "alone", "beside 50 clients"
READS: Mapping[str, tuple[str, float, float]] = {
    "a project": ("/projects/{0}", 10, 50),
    "1,000 operations": ("/projects/{0}/operations?limit=1000", 25, 100),
    "400 projects": ("/projects?limit=400", 25, 100),
    "all keys": ("/api_keys", 15, 100),
}
"""The path of each request, and the limits of its median in ms: alone, and beside others."""


async def run(size: RunSize) -> list[Row]:
    """Measure all requests in rounds, alone and beside other clients."""
    rounds = size.pick(full=100, quick=5)
    sizes = Sizes(
        keys=size.pick(full=10_000, quick=1_000),
        projects=size.pick(full=1_000, quick=100),
        operations=size.pick(full=100_000, quick=10_000),
    )
    with tempfile.TemporaryDirectory() as folder:
        async with large_control_plane(Path(folder) / "data.db", sizes) as server:
            alone = await measure(server, rounds)
            async with many_clients(server):
                beside = await measure(server, rounds)
    return [
        row
        for name, (_, limit, limit_beside) in READS.items()
        for row in (
            _row(name, ALONE, alone[name], limit),
            _row(name, BESIDE, beside[name], limit_beside),
        )
    ]


async def measure(server: LargeControlPlane, rounds: int) -> dict[str, list[float]]:
    """Return the response times of each request, in milliseconds. Each round sends all."""
    headers = {"Authorization": f"Bearer {server.api_key}"}
    times: dict[str, list[float]] = {name: [] for name in READS}
    async with aiohttp.ClientSession(headers=headers) as session:
        for _ in range(rounds):
            for name, (path, _, _) in READS.items():
                url = server.base_url + path.format(server.project_id)
                started = time.perf_counter()
                async with session.get(url) as response:
                    response.raise_for_status()
                    await response.read()
                times[name].append((time.perf_counter() - started) * 1000)
    return times


def _row(name: str, measure: str, times: list[float], limit: float) -> Row:
    slowest = sorted(times)[int(len(times) * 0.99)]
    note = f"{measure}, 99 % within {slowest:.0f} ms, the slowest {max(times):.0f} ms"
    return make_row(name, measure, "ms", {OURS: times}, targets=[Target(limit)], note=note)
