"""A contender in a process of its own, which tells of itself: what is held, and what it does idle.

``python -m benchmarks.harness.fresh_process memory CONTENDER ADDRESS OPERATION``
"""

import asyncio
import gc
import resource
import sys
import time
from typing import TypeVar

import msgspec

from benchmarks.peers.base import Contender
from benchmarks.peers.contenders import CONTENDERS as KINDS
from benchmarks.servers.fixed_responses import PROJECT_ID
from benchmarks.servers.nginx import Nginx

T = TypeVar("T", bound=msgspec.Struct)
CONTENDERS: dict[str, type[Contender]] = {kind.name: kind for kind in KINDS}


class Idle(msgspec.Struct):
    """What a process did while nobody asked anything of it."""

    cpu_ms: float
    wakeups: int
    tasks: int
    requests: float = 0.0


async def idle(contender: Contender, seconds: float) -> Idle:
    """Do nothing for a while after one request."""
    await contender.alone(1)
    await asyncio.sleep(0.5)
    gc.collect()
    cpu, wakeups = time.process_time(), _wakeups()
    await asyncio.sleep(seconds)
    cpu, wakeups = time.process_time() - cpu, _wakeups() - wakeups
    return Idle(cpu * 1000, wakeups, len(asyncio.all_tasks()) - 1)


def _wakeups() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


async def ask(what: str, name: str, server: Nginx, kind: type[T]) -> T:
    """What a fresh process tells."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.harness.fresh_process", what, name),
        *(server.base_url, server.operation_id),
        stdout=asyncio.subprocess.PIPE,
    )
    told, _ = await process.communicate()
    return msgspec.json.decode(told, type=kind)


async def main(what: str, name: str, base_url: str, operation_id: str) -> None:
    """Print what is asked, as JSON: ``memory``, or the seconds to be idle for."""
    async with CONTENDERS[name](base_url, PROJECT_ID, operation_id) as contender:
        found = await (contender.held() if what == "memory" else idle(contender, float(what)))
    print(msgspec.json.encode(found).decode())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
