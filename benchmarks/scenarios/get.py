"""A GET of an operation, one after another and 50 at once."""

from contextlib import AsyncExitStack

from benchmarks.harness.results import FLOOR, Row, Target, row
from benchmarks.harness.rounds import entered, in_turn
from benchmarks.harness.run_size import Effort
from benchmarks.peers.base import AT_ONCE, Contender
from benchmarks.peers.contenders import CONTENDERS
from benchmarks.servers.fixed_responses import PAGE
from benchmarks.servers.nginx import Nginx

GETS = 200


async def run(effort: Effort) -> list[Row]:
    """Batches of as many GETs of each contender in turn."""
    rounds = effort.of(thorough=20, quick=2)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(Nginx(PAGE))
        contenders = await entered(stack, CONTENDERS, server)

        async def alone(contender: Contender) -> float:
            return await contender.alone(GETS) / GETS * 1000

        async def at_once(contender: Contender) -> float:
            return await contender.at_once(GETS // AT_ONCE) / (GETS // AT_ONCE) * 1000

        targets = [Target(1.10, by=FLOOR)]
        return [
            row(
                "a GET",
                "one after another",
                "ms each",
                await in_turn(contenders, alone, rounds),
                targets=targets,
            ),
            row(
                "50 GETs",
                "at once",
                "ms for all",
                await in_turn(contenders, at_once, rounds),
                targets=targets,
            ),
        ]
