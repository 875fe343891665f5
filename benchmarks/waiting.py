"""Waiting at scale: what it costs and how late it answers, beside the polling that others do.

``python benchmarks/waiting.py`` prints a table: each figure of ours, the same of "a GET an
operation every second, one after another" measured in the same run, their ratio, and the target.
The scenario server, a process of its own, counts the requests and knows when operations end.
``--quick`` repeats less often, ``--only ad`` runs those scenarios, ``--json FILE`` writes the
figures down. It fails where a target is missed.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import msgspec
from figures import QUICK, THOROUGH, Effort, Figure, Result, show
from lone import lone
from many import at_scale, evenly_ending, failing, limited, many_projects

from neonctl_async import NeonError

LONGEST = 150.0
"""Seconds after which a scenario is given up."""


Scenario = Callable[[Effort], Awaitable[Result]]


SCENARIOS: dict[str, Scenario] = {
    "a": evenly_ending,
    "b": many_projects,
    "c": lone,
    "d": limited,
    "e": failing,
    "f": at_scale,
}


async def bounded(letter: str, scenario: Scenario, effort: Effort) -> Result:
    """What a scenario found out; one that fails or hangs is told of, and missed."""
    try:
        async with asyncio.timeout(LONGEST):
            return await scenario(effort)
    except (NeonError, aiohttp.ClientError, OSError) as error:
        title = (scenario.__doc__ or "").partition("\n")[0]
        failed = Figure(
            scenario=letter, name="runs to its end", ours=0, least=0, most=0, target=1, ok=False
        )
        return Result(figures=[failed], notes=[f"{letter}: {title} {error!r}"])


async def run(letters: str, effort: Effort) -> list[Result]:
    """Run the scenarios of these letters."""

    async def begin(letter: str, delay: float) -> None:
        await asyncio.sleep(delay)
        results[letter] = await bounded(letter, SCENARIOS[letter], effort)

    results: dict[str, Result] = {}
    together = [letter for letter in letters if letter in effort.together]
    await asyncio.gather(*(begin(letter, effort.together[letter]) for letter in together))
    for letter in letters:
        if letter not in together:
            await begin(letter, 0.0)
    return [results[letter] for letter in sorted(results)]


def main() -> int:
    """Run the benchmark; answers 1 where a target is missed."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--only", default="abcdef", metavar="LETTERS", help="scenarios to run")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the figures")
    arguments = parser.parse_args()
    began = time.monotonic()
    results = asyncio.run(run(arguments.only, QUICK if arguments.quick else THOROUGH))
    show(results)
    print(f"{time.monotonic() - began:.0f} s")
    if arguments.json is not None:
        arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode(results)) + b"\n")
    return 0 if all(one.ok is not False for result in results for one in result.figures) else 1


if __name__ == "__main__":
    sys.exit(main())
