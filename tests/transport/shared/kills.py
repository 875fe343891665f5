"""Processes that share an account, and are killed."""

import subprocess
import sys
import time
from pathlib import Path

WORKER = """
import asyncio, sys, time
from pathlib import Path
from neonctl_async import RateBudget
from neonctl_async.transport.budget import Budget
from neonctl_async.transport.shared.account import SharedAccount
from neonctl_async.models.secret import Secret
from neonctl_async.transport.shared.redis_store import RedisStore
from neonctl_async.transport.shared.sqlite_store import SqliteStore

async def main(place, log, number):
    limits = RateBudget(per_route_per_second=5)
    if place.startswith("redis:"):
        store = RedisStore(Secret(place), "redis", "account")
    else:
        store = SqliteStore(Path(place), "account")
    account = SharedAccount(
        limits, store, client=number, longest_request=0.5, fallback_parts=4
    )
    budget = Budget(limits, 100, account)
    with open(log, "a", buffering=1) as lines:
        async def work(route):
            while True:
                slot = await budget.acquire(route)
                start = time.monotonic()
                await asyncio.sleep(0.02)
                lines.write(f"{number} {route} {start}\\n")
                slot.release()
        await asyncio.gather(*(work(f"/{route}") for route in range(3)))

asyncio.run(main(*sys.argv[1:]))
"""


def read_log(log: Path) -> list[tuple[str, str, float]]:
    """Return the number of the process, the route and the time of each request."""
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [(number, route, float(at)) for number, route, at in map(str.split, lines)]


def check_limits_through_kills(place: str, log: Path) -> None:
    """Kill two of six processes while all of them wait for the same routes."""
    command = [sys.executable, "-c", WORKER, place, str(log)]
    processes = [subprocess.Popen([*command, str(number)]) for number in range(6)]
    try:
        while len({number for number, _, _ in read_log(log)}) < 6:
            time.sleep(0.1)
        for process in processes[:2]:
            process.kill()
            time.sleep(1)
        killed_at = time.monotonic()
        time.sleep(3)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    requests = read_log(log)
    for route in ("/0", "/1", "/2"):
        times = [at for _, name, at in requests if name == route]
        assert max(sum(at <= other < at + 1 for other in times) for at in times) <= 5
    survivors = {number for number, _, at in requests if at > killed_at}
    assert survivors == {"2", "3", "4", "5"}
