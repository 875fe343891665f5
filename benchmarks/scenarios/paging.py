"""A list of 20,000 operations, read page by page from 20 ms away, with work for each page."""

from benchmarks.harness.results import Row, Target, make_row
from benchmarks.harness.rounds import open_all, run_rounds
from benchmarks.harness.run_size import RunSize
from benchmarks.peers.base import Pager
from benchmarks.peers.floor import Floor
from benchmarks.peers.neon_sdk_contender import SdkOnFixedResponses
from benchmarks.peers.ours import Ours, WithoutPrefetch
from benchmarks.peers.pydantic_models import HttpxPydantic
from benchmarks.servers.latency_proxy import latency_proxy
from benchmarks.servers.nginx import Nginx

ROUND_TRIP = 0.02
WORK = 0.02
PAGERS: tuple[type[Pager], ...] = (Ours, WithoutPrefetch, Floor, HttpxPydantic, SdkOnFixedResponses)


async def run(size: RunSize) -> list[Row]:
    """Read the whole list in rounds."""
    rounds = size.pick(full=6, quick=1)
    count = size.pick(full=20_000, quick=2_000)
    async with (
        Nginx(count) as server,
        latency_proxy(ROUND_TRIP, server.base_url) as base_url,
        open_all(PAGERS, server, base_url) as pagers,
    ):
        values = await run_rounds(pagers, lambda pager: pager.paging(WORK), rounds)
    name = f"paging {count:,} operations"
    measure = f"{WORK * 1000:.0f} ms of work per page"
    targets = [Target(0.75, relative_to=WithoutPrefetch.name)]
    return [make_row(name, measure, "s", values, targets=targets)]
