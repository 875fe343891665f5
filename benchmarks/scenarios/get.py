"""GETs of an operation, one after another and 50 concurrently."""

from benchmarks.harness.results import FLOOR, Row, Target, make_row
from benchmarks.harness.rounds import open_all, run_rounds
from benchmarks.harness.run_size import RunSize
from benchmarks.peers.base import CONCURRENCY, Contender
from benchmarks.peers.contenders import CONTENDERS
from benchmarks.servers.fixed_responses import PAGE
from benchmarks.servers.nginx import Nginx

GETS = 200


async def run(size: RunSize) -> list[Row]:
    """Measure batches of GETs in rounds."""
    rounds = size.pick(full=20, quick=2)
    async with Nginx(PAGE) as server, open_all(CONTENDERS.values(), server) as contenders:

        async def sequential(contender: Contender) -> float:
            return await contender.sequential_gets(GETS) / GETS * 1000

        async def concurrent(contender: Contender) -> float:
            batches = GETS // CONCURRENCY
            return await contender.concurrent_gets(batches) / batches * 1000

        single = await run_rounds(contenders, sequential, rounds)
        fifty = await run_rounds(contenders, concurrent, rounds)
    return [
        make_row("GET", "one after another", "ms each", single, targets=[Target(1.25, FLOOR)]),
        make_row("50 GETs", "concurrent", "ms for all", fifty, targets=[Target(1.35, FLOOR)]),
    ]
