"""A GET of an operation, one after another and 50 at once."""

from contextlib import AsyncExitStack

from benchmarks.answers import PAGE
from benchmarks.effort import Effort
from benchmarks.figures import FLOOR, Row, Target, row
from benchmarks.nginx import Nginx
from benchmarks.peers.contender import AT_ONCE, Contender
from benchmarks.peers.floor import Floor
from benchmarks.peers.neon_api import NeonApi
from benchmarks.peers.neon_sdk_fixed import SdkOnFixedAnswers
from benchmarks.peers.ours import Ours
from benchmarks.peers.pydantic_models import HttpxPydantic
from benchmarks.turns import entered, in_turn

GETS = 200
CONTENDERS: tuple[type[Contender], ...] = (
    Ours,
    Floor,
    NeonApi,
    HttpxPydantic,
    SdkOnFixedAnswers,
)


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
