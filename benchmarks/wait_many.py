"""How late a wait ends, and what it costs: 500 operations of 2 s in 100 projects.

Against the local control plane, beside the way other clients wait: each operation by itself, one
after another, once a second. Run it with PYTHONDEVMODE=1 to see that nothing is left behind.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from neonctl_async import BranchCreated, NeonClient, PollPolicy, RateBudget
from neonctl_async.local import Durations, LocalControlPlane

PROJECTS = 100
OPERATIONS = 500
SECONDS = 2.0

Wait = Callable[[NeonClient, list[BranchCreated]], Awaitable[object]]


async def together(neon: NeonClient, created: list[BranchCreated]) -> None:
    """One wait for everything."""
    await neon.operations.wait(created)


async def one_after_another(neon: NeonClient, created: list[BranchCreated]) -> None:
    """Each operation until it has ended, a look a second, then the next."""
    for branch in created:
        for operation in branch.operations:
            seen = await neon.operations.get(operation.project_id, operation.id)
            while seen.status in ("scheduling", "running"):
                await asyncio.sleep(1.0)
                seen = await neon.operations.get(seen.project_id, seen.id)


async def measure(wait: Wait, polling: PollPolicy) -> tuple[float, int, int]:
    """Seconds past the last operation's end, requests sent, most connections open."""
    async with (
        LocalControlPlane(durations=Durations(default=SECONDS)) as plane,
        NeonClient(
            plane.api_key,
            base_url=plane.base_url,
            budget=RateBudget.unlimited(),
            polling=polling,
        ) as neon,
    ):
        projects = await asyncio.gather(
            *(neon.projects.create(name=f"p{n}", wait=True) for n in range(PROJECTS))
        )
        created = await asyncio.gather(
            *(
                neon.branches.create(projects[n % PROJECTS].project.id, name=f"b{n}")
                for n in range(OPERATIONS)
            )
        )
        last_end = time.monotonic() + SECONDS
        requests = neon.requests_sent
        await wait(neon, created)
        late = time.monotonic() - last_end
        return late, neon.requests_sent - requests, plane.open_connections


async def main() -> None:
    """Print a line a way of waiting, with ratios to the first."""
    ways: dict[str, tuple[Wait, PollPolicy]] = {
        "together, default pace": (together, PollPolicy()),
        "together, every 0.25 s": (together, PollPolicy.constant(0.25)),
        "one after another, every 1 s": (one_after_another, PollPolicy()),
    }
    base: tuple[float, int] | None = None
    print(f"{OPERATIONS} operations of {SECONDS:g} s in {PROJECTS} projects")
    for name, (wait, polling) in ways.items():
        late, requests, connections = await measure(wait, polling)
        base = base or (late, requests)
        print(
            f"{name:30} {late:6.2f} s late ({late / base[0]:4.2f} x)"
            f" {requests:5} requests ({requests / base[1]:4.2f} x)"
            f" {connections:4} connections"
        )


if __name__ == "__main__":
    asyncio.run(main())
