"""What 100,000 operations take in memory, once they are objects, each time in a fresh process."""

from benchmarks.harness.fresh_process import CONTENDERS, ask
from benchmarks.harness.results import Row, row
from benchmarks.harness.run_size import Effort
from benchmarks.peers.base import Held
from benchmarks.servers.nginx import Nginx


async def run(effort: Effort) -> list[Row]:
    """The contenders in turn. Quickly, 20,000 have to do."""
    stored = effort.of(thorough=100_000, quick=5_000)
    taken: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    async with Nginx(stored) as server:
        for _ in range(effort.of(thorough=3, quick=1)):
            for name, values in taken.items():
                held = await ask("memory", name, server, Held)
                assert held.records == stored, f"{name} holds {held.records}"
                values.append(held.megabytes)
    return [row(f"{stored:,} operations held", "resident memory", "MB", taken)]
