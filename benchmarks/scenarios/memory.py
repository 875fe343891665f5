"""The memory of 100,000 decoded operations, measured in fresh processes."""

from benchmarks.harness.fresh_process import memory_of
from benchmarks.harness.results import Row, make_row
from benchmarks.harness.run_size import RunSize
from benchmarks.peers.contenders import CONTENDERS
from benchmarks.servers.nginx import Nginx


async def run(size: RunSize) -> list[Row]:
    """Measure the clients one after another; a quick run reads 5,000 operations."""
    count = size.pick(full=100_000, quick=5_000)
    values: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    async with Nginx(count) as server:
        for _ in range(size.pick(full=3, quick=1)):
            for name, runs in values.items():
                memory = await memory_of(name, server)
                assert memory.records == count, f"{name} has read {memory.records} operations"
                runs.append(memory.megabytes)
    return [make_row(f"{count:,} operations in memory", "resident memory", "MB", values)]
