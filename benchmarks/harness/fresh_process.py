"""Runs one client in a fresh process, which reports the memory that its list of records needs.

``python -m benchmarks.harness.fresh_process CLIENT BASE_URL OPERATION_ID``
"""

import asyncio
import sys

import msgspec

from benchmarks.peers.base import ListMemory
from benchmarks.peers.contenders import CONTENDERS
from benchmarks.servers.fixed_responses import PROJECT_ID
from benchmarks.servers.nginx import Nginx


async def memory_of(name: str, server: Nginx) -> ListMemory:
    """Return the report of a fresh process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.harness.fresh_process", name),
        *(server.base_url, server.operation_id),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    return msgspec.json.decode(output, type=ListMemory)


async def main(name: str, base_url: str, operation_id: str) -> None:
    """Print the report as JSON."""
    async with CONTENDERS[name](base_url, PROJECT_ID, operation_id) as contender:
        report = await contender.list_memory()
    print(msgspec.json.encode(report).decode())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
