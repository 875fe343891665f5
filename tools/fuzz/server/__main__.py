"""Searches for requests that break the local control plane: ``python -m tools.fuzz.server``.

Inputs come from a seed. The search stops at the first violation: a 5xx, an
error or a key in the log, a connection or a task that remains. It prints the options that repeat
the run, and the bytes that the server received.
"""

import argparse
import asyncio
import random
import sys
import time

from neonctl_async.testing import FakeClockLoop
from tools.fuzz.server.exchange import exchanges

INPUTS_PER_SERVER = 500
MAX_SECONDS = 1.0
"""The CPU time that one input may take, because the event loop is blocked meanwhile."""


def an_input(seed: int, number: int) -> bytes:
    """Return an input of a seed."""
    source = random.Random(f"{seed} {number}")
    return source.randbytes(source.choice((16, 64, 256, 1024, 4096)))


async def _run(seed: int, first: int, deadline: float, counts: dict[int, int]) -> int:
    """Run the inputs of one server. Return the number of inputs."""
    async with exchanges() as running:
        for number in range(first, first + INPUTS_PER_SERVER):
            if time.monotonic() > deadline:
                return number - first
            data = an_input(seed, number)
            started = time.process_time()
            try:
                await running.run(data)
                seconds = time.process_time() - started
                assert seconds < MAX_SECONDS, f"the input took {seconds:.2f} s"
            except Exception:
                sys.stderr.write(
                    f"--seed {seed} --first {first}: input {number}: {data[:4096]!r}\n"
                )
                for part in running.last_sent:
                    sys.stderr.write(f"sent: {part[:4096]!r}\n")
                raise
        for status, count in running.statuses.items():
            counts[status] = counts.get(status, 0) + count
    return INPUTS_PER_SERVER


def main() -> int:
    """Run inputs until the time is over or one violates a property."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz.server")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    options = parser.parse_args()
    deadline = time.monotonic() + options.seconds
    done = options.first
    counts: dict[int, int] = {}
    while time.monotonic() < deadline:
        with asyncio.Runner(loop_factory=FakeClockLoop) as runner:
            done += runner.run(_run(options.seed, done, deadline, counts))
    sys.stdout.write(f"seed {options.seed}: {done - options.first} inputs, no violation\n")
    statuses = ", ".join(f"{status}: {count}" for status, count in sorted(counts.items()))
    sys.stdout.write(f"responses by status: {statuses}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
