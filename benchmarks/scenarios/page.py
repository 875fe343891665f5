"""A page of 1,000 operations, fetched and decoded."""

from benchmarks.harness.results import FLOOR, Row, Target, make_row
from benchmarks.harness.rounds import open_all, run_rounds
from benchmarks.harness.run_size import RunSize
from benchmarks.peers.base import Contender
from benchmarks.peers.contenders import CONTENDERS
from benchmarks.servers.fixed_responses import PAGE
from benchmarks.servers.nginx import Nginx

PAGES = 10


async def run(size: RunSize) -> list[Row]:
    """Measure batches of pages in rounds."""
    async with Nginx(PAGE) as server, open_all(CONTENDERS.values(), server) as contenders:

        async def pages(contender: Contender) -> float:
            return await contender.pages(PAGES) / PAGES * 1000

        values = await run_rounds(contenders, pages, size.pick(full=25, quick=2))
    targets = [Target(1.25, FLOOR)]
    name = "page of 1,000 operations"
    return [make_row(name, "fetched and decoded", "ms each", values, targets=targets)]
