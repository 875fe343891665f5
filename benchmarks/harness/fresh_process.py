"""Runs one client in a fresh process, which reports its memory or its idle activity.

``python -m benchmarks.harness.fresh_process memory CLIENT BASE_URL OPERATION_ID``
"""

import asyncio
import gc
import resource
import sys
import time
from typing import TypeVar

import msgspec

from benchmarks.peers.base import Contender
from benchmarks.peers.contenders import CONTENDERS
from benchmarks.servers.fixed_responses import PROJECT_ID
from benchmarks.servers.nginx import Nginx

T = TypeVar("T", bound=msgspec.Struct)


class IdleActivity(msgspec.Struct):
    """The activity of a process whose client is not used."""

    cpu_ms: float
    wakeups: int
    tasks: int
    requests: float = 0.0


async def idle(contender: Contender, seconds: float) -> IdleActivity:
    """Send one request, do nothing for ``seconds``, and return the activity meanwhile."""
    await contender.sequential_gets(1)
    await asyncio.sleep(0.5)
    gc.collect()
    cpu, wakeups = time.process_time(), _wakeups()
    await asyncio.sleep(seconds)
    cpu, wakeups = time.process_time() - cpu, _wakeups() - wakeups
    return IdleActivity(cpu * 1000, wakeups, len(asyncio.all_tasks()) - 1)


def _wakeups() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


async def run_fresh(task: str, name: str, server: Nginx, kind: type[T]) -> T:
    """Return the report of a fresh process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.harness.fresh_process", task, name),
        *(server.base_url, server.operation_id),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    return msgspec.json.decode(output, type=kind)


async def main(task: str, name: str, base_url: str, operation_id: str) -> None:
    """Print the report as JSON. The task is ``memory`` or the number of seconds to be idle."""
    async with CONTENDERS[name](base_url, PROJECT_ID, operation_id) as contender:
        report = await (
            contender.list_memory() if task == "memory" else idle(contender, float(task))
        )
    print(msgspec.json.encode(report).decode())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
