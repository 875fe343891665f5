"""Ensures the same branches in many processes, some of which are killed and start again.

``python -m tests.provisioning.ensuring`` takes a :class:`Plan` as JSON and prints a
:class:`Summary`. It forks the processes, because each would need a second to import the library.
"""

import asyncio
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio.lowlevel
import msgspec

from neonctl_async import EndpointSpec, NeonClient, RateBudget, RetryPolicy, Timeout

RETRY = RetryPolicy(attempts=12, initial=0.02, maximum=0.5, deadline=60.0)
LIFETIME = timedelta(days=1)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The work of all processes: ``NEON_API_KEY`` and ``NEON_API_HOST`` select the server."""

    project_id: str
    branches: int
    processes: int
    kills: int
    seconds: float
    """The kills are spread over this time."""
    seed: int
    directory: str
    """An empty directory for the results of the processes."""

    @property
    def names(self) -> list[str]:
        """The names of the branches."""
        return [f"tenant-{number}" for number in range(self.branches)]


class Result(msgspec.Struct, frozen=True):
    """The results of a process: ids by name, the number of creations, and all errors."""

    ids: dict[str, str]
    created: int
    errors: list[str]


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The results of all processes."""

    results: list[Result]
    kills: int
    failures: list[int]
    """The exit statuses of processes that were not killed, but failed."""
    seconds: float


async def ensure_all(plan: Plan, number: int) -> Result:
    """Ensure all branches at once, in an order of this process."""
    names = plan.names
    random.Random(plan.seed * 1000 + number).shuffle(names)
    async with NeonClient(
        budget=RateBudget.unlimited(), retry=RETRY, timeout=Timeout(connect=5, read=5, total=10)
    ) as neon:
        outcomes = await asyncio.gather(
            *(
                neon.branches.ensure(
                    plan.project_id,
                    name=name,
                    parent="main",
                    endpoints=[EndpointSpec(type="read_write")],
                    expires_at=datetime.now(UTC) + LIFETIME,
                    wait=True,
                )
                for name in names
            ),
            return_exceptions=True,
        )
    ids: dict[str, str] = {}
    errors: list[str] = []
    created = 0
    for name, outcome in zip(names, outcomes, strict=True):
        if isinstance(outcome, BaseException):
            errors.append("".join(traceback.format_exception(outcome)))
        else:
            ids[name] = outcome.branch.id
            created += outcome.created
    return Result(ids, created, errors)


def start(plan: Plan, number: int) -> int:
    """Fork a process that writes its result to a file. Return its process id."""
    pid = os.fork()
    if pid:
        return pid
    result = asyncio.run(ensure_all(plan, number))
    path = Path(plan.directory, f"{number}.json")
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_bytes(msgspec.json.encode(result))
    unfinished.replace(path)
    os._exit(0)


def run(plan: Plan) -> Summary:
    """Start all processes, and kill some of them. Start these again until all have finished."""
    generator = random.Random(plan.seed)
    times = sorted(generator.uniform(0.0, plan.seconds) for _ in range(plan.kills))
    started = time.monotonic()
    running = {start(plan, number): number for number in range(plan.processes)}
    kills = 0
    failures: list[int] = []
    try:
        while running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid:
                number = running.pop(pid)
                if os.WIFSIGNALED(status):
                    running[start(plan, number)] = number
                elif status:
                    failures.append(os.waitstatus_to_exitcode(status))
            elif times and time.monotonic() - started > times[0]:
                times.pop(0)
                os.kill(generator.choice(list(running)), signal.SIGKILL)
                kills += 1
            else:
                time.sleep(0.005)
    finally:
        for pid in running:
            os.kill(pid, signal.SIGKILL)
    return Summary(
        results=[
            msgspec.json.decode(path.read_bytes(), type=Result)
            for path in sorted(Path(plan.directory).glob("*.json"))
        ],
        kills=kills,
        failures=failures,
        seconds=time.monotonic() - started,
    )


def created_by_name(results: list[Result]) -> Counter[tuple[str, str]]:
    """Return how many processes returned each id for each name."""
    return Counter((name, id) for result in results for name, id in result.ids.items())


if __name__ == "__main__":
    asyncio.run(anyio.lowlevel.checkpoint())  # imports what anyio imports at the first use
    summary = run(msgspec.json.decode(sys.argv[1], type=Plan))
    sys.stdout.write(msgspec.json.encode(summary).decode())
