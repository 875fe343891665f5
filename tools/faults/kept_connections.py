"""Kept connections that the server has closed: the client must not send a request on them.

The server runs in another process, so that it can close them while the event loop is blocked.
"""

import asyncio
import random
import time
from collections.abc import Collection
from pathlib import Path

from control_plane.tests.client import Http
from neonctl_async import Hooks, NeonClient
from tests.support.clock import now
from tests.support.server_process import serving
from tools.faults.callers import NOTES, PATIENT, Caller, Outcome, run_call
from tools.faults.final_state import FinalState
from tools.faults.log import FaultLog
from tools.faults.report import Report

IDLE = "kept connection closed"
BLOCKED = "kept connection closed, loop blocked"
CLOSED = (IDLE, BLOCKED)
ROUNDS = 2
CALLERS = 20
IDLE_SECONDS = 0.3
"""The time after which the server closes a connection without a request."""
PAUSE = 1.5
"""The time between two calls, in seconds. A busy machine may close connections later."""


async def inject(
    report: Report, names: Collection[str], chance: random.Random, _directory: Path
) -> None:
    """Make calls at once, after pauses in which the server has closed all connections."""
    limit = f'{{"idle": {IDLE_SECONDS}}}'
    is_blocking = False

    def block(_event: object) -> None:
        """Block the loop at the first of the requests that use kept connections at once."""
        nonlocal is_blocking
        if is_blocking:
            is_blocking = False
            time.sleep(PAUSE)

    async with serving("--connections", limit, "--duration", "0.05", "--quiet") as served:
        base_url, key = served.base_url, served.api_key
        hooks = [NOTES, Hooks(on_request=block)]
        async with (
            Http(base_url, key) as http,
            NeonClient(key, base_url=base_url, hooks=hooks) as neon,
        ):
            project = (await http.request("POST", "/projects", {"project": {}}))["project"]["id"]
            callers = [
                Caller(f"c{number}", neon, [project], chance.random(), now, limits=PATIENT)
                for number in range(CALLERS)
            ]
            outcomes: list[Outcome] = []
            for name in [*names] * ROUNDS:
                reads = [Outcome(kind="list", name=f"before {name}") for _ in range(CALLERS)]
                await asyncio.gather(*(run_call(one, neon.users.me(), now) for one in reads))
                is_blocking = name == BLOCKED
                await asyncio.sleep(0 if is_blocking else PAUSE)
                calls = await asyncio.gather(*(caller.call() for caller in callers))
                report.faults[name] += len(calls)
                for call in calls:
                    report.add_call_that_may_not_fail(name, call)
                outcomes += calls
            state = await FinalState.read(http, [project])
    report.violations += state.violations(outcomes, FaultLog())
