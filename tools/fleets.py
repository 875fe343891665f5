"""Provisions a fleet in a process that is killed repeatedly: ``python -m tools.fleets``.

The local control plane loses responses, returns 429, 502 and 503, and locks branches (423). The
process is killed with SIGKILL, and started again until the fleet is complete. At the end, each
tenant must have exactly one branch, created by exactly one operation, with one compute.
"""

import argparse
import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from neonctl_async import NeonClient, NeonError, RateBudget
from neonctl_async.provisioning.fleet import Fleet, FleetError, FleetUpdate, Tenant
from neonctl_local import Durations, Fault, LocalControlPlane, RateLimits

CREATE = "POST /projects/{project_id}/branches"
MAX_RUNS = 20
"""The number of runs after which an incomplete fleet is a violation."""


class Size(NamedTuple):
    """The size of a campaign."""

    tenants: int
    projects: int
    per_minute: int
    """The requests per minute, of the client and of the local control plane."""

    @property
    def per_second(self) -> int:
        """The requests per second, in the proportion of Neon's limits."""
        return max(1, self.per_minute * 40 // 700)

    def fleet(self) -> list[Tenant]:
        """Return the tenants."""
        return [
            Tenant(
                project=f"project-{number % self.projects}",
                branch=f"tenant-{number}",
                region="aws-us-east-2",
                max_cu=1,
            )
            for number in range(self.tenants)
        ]


def faults(seed: int) -> list[Fault]:
    """Return the faults of a campaign."""
    creations = [
        Fault(route=CREATE, when="after", drop=True, probability=0.03, seed=seed),
        Fault(route=CREATE, when="after", status=502, probability=0.02, seed=seed + 1),
        Fault(route=CREATE, status=423, probability=0.01, seed=seed + 2),
        Fault(route="POST /projects", when="after", drop=True, probability=0.03, seed=seed + 3),
    ]
    others = [
        Fault(status=503, probability=0.01, seed=seed + 4),
        Fault(status=429, headers={"Retry-After": "1"}, probability=0.005, seed=seed + 5),
        Fault(drop=True, probability=0.005, seed=seed + 6),
    ]
    return [*creations, *others]


async def work(size: Size) -> int:
    """Provision the fleet once; return 1 if it is incomplete. This is the killed process."""

    def show(update: FleetUpdate) -> None:
        created = update.result is not None and update.result.created
        sys.stdout.write("created\n" if created else "adopted\n" if update.result else "failed\n")
        sys.stdout.flush()

    budget = RateBudget(per_minute=size.per_minute, per_route_per_second=size.per_second)
    async with NeonClient(budget=budget) as neon:
        report = await Fleet(neon, size.fleet()).apply(uris=False, on_update=show)
        sys.stderr.write(f"{report}; {neon.requests_sent} requests\n")
        sys.stderr.writelines(f"{tenant}: {error}\n" for tenant, error in report.failed.items())
    return 0 if report.is_complete else 1


class Campaign:
    """Runs the fleet with kills, and checks the branches at the end."""

    def __init__(self, control_plane: LocalControlPlane, size: Size, seed: int) -> None:
        self.violations: list[str] = []
        self.runs: list[str] = []
        """A line for each run."""
        self._control_plane = control_plane
        self._size = size
        self._chance = random.Random(seed)

    async def run(self, kills: int) -> None:
        """Kill ``kills`` runs, spread over the work. Then run until the fleet is complete."""
        for number in range(kills):
            share = (number + self._chance.random()) / (kills + 1)
            already = await self._count_branches()
            await self._run_once(max(1, int(share * self._size.tenants) - already))
        for _ in range(MAX_RUNS):
            if await self._run_once(None) == 0:
                break
        else:
            self.violations.append(f"the fleet is incomplete after {MAX_RUNS} runs")
        await self._check()

    async def _run_once(self, kill_after: int | None) -> int:
        """Run the fleet. Kill it after it has created a number of branches. Return its status."""
        started, before = time.monotonic(), self._control_plane.requests_served
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tools.fleets", "--worker"),
            *(
                f"--{name.replace('_', '-')}={value}"
                for name, value in self._size._asdict().items()
            ),
            env=os.environ
            | {
                "NEON_API_KEY": self._control_plane.api_key,
                "NEON_API_HOST": self._control_plane.base_url,
            },
            cwd=Path(__file__).parents[1],
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        outcomes: Counter[str] = Counter()
        async for line in process.stdout:
            outcomes[line.decode().strip()] += 1
            if kill_after is not None and outcomes["created"] >= kill_after:
                process.kill()
                break
        status = await process.wait()
        requests = self._control_plane.requests_served - before
        seconds = time.monotonic() - started
        end = "killed" if status == -signal.SIGKILL else f"status {status}"
        self.runs.append(f"{end} after {seconds:.1f} s, {requests} requests, {dict(outcomes)}")
        return status

    def _client(self) -> NeonClient:
        return NeonClient(
            self._control_plane.api_key,
            base_url=self._control_plane.base_url,
            budget=RateBudget.unlimited(),
        )

    async def _count_branches(self) -> int:
        async with self._client() as neon:
            projects = await neon.projects.list(limit=400).collect()
            counts = [await neon.branches.count(project.id) for project in projects]
        return sum(counts) - len(counts)

    async def _check(self) -> None:
        """Compare the branches, operations and computes with the tenants."""
        expected: dict[str, set[str]] = {}
        for tenant in self._size.fleet():
            expected.setdefault(tenant.project, set()).add(tenant.branch)
        async with self._client() as neon:
            projects = await neon.projects.list(limit=400).collect()
            if sorted(project.name for project in projects) != sorted(expected):
                self.violations.append(f"there are {len(projects)} projects")
            for project in projects:
                await self._check_project(neon, project.id, expected.get(project.name, set()))

    async def _check_project(self, neon: NeonClient, id: str, expected: set[str]) -> None:
        branches = await neon.branches.list(id, limit=1000).collect()
        ids = {branch.id: branch.name for branch in branches if not branch.default}
        if Counter(ids.values()) != Counter(expected):
            self.violations.append(f"{id} has {len(ids)} branches instead of {len(expected)}")
        operations = await neon.operations.list(id, limit=1000).collect()
        created = Counter(one.branch_id for one in operations if one.action == "create_branch")
        if created != dict.fromkeys(ids, 1):
            self.violations.append(f"{id} has {created.total()} operations create_branch")
        provisioning = [one for one in operations if one.action != "suspend_compute"]
        if unfinished := {one.status for one in provisioning} - {"finished"}:
            self.violations.append(f"{id} has operations that are {unfinished}")
        computes = Counter(one.branch_id for one in await neon.endpoints.list(id))
        if computes != dict.fromkeys((branch.id for branch in branches), 1):
            self.violations.append(f"{id} has {computes.total()} computes")


async def campaign(
    size: Size, *, kills: int, seed: int, duration: float, rate_limits: bool
) -> Campaign:
    """Run a campaign with a local control plane, and return it."""
    limits = RateLimits(account_per_minute=size.per_minute, route_per_second=size.per_second)
    async with LocalControlPlane(
        durations=Durations(default=duration),
        lock="branch",
        rate_limits=limits if rate_limits else False,
    ) as control_plane:
        injected = [control_plane.inject(fault) for fault in faults(seed)]
        run = Campaign(control_plane, size, seed)
        started = time.monotonic()
        await run.run(kills)
        fired = sum(one.fired for one in injected)
        statuses = Counter(status for *_, status in control_plane.requests)
        run.runs.append(
            f"in total {time.monotonic() - started:.1f} s, {fired} faults, "
            f"statuses {dict(sorted(statuses.items()))}"
        )
        return run


def main() -> int:
    """Run a campaign; return 1 after a violation."""
    parser = argparse.ArgumentParser(prog="python -m tools.fleets")
    parser.add_argument("--tenants", type=int, default=2000)
    parser.add_argument("--projects", type=int, default=100)
    parser.add_argument("--per-minute", type=int, default=60_000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--duration", type=float, default=1.0)
    parser.add_argument("--rate-limits", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    size = Size(options.tenants, options.projects, options.per_minute)
    if options.worker:
        try:
            return asyncio.run(work(size))
        except (NeonError, FleetError) as error:
            sys.stderr.write(f"{error}\n")
            return 1
    run = asyncio.run(
        campaign(
            size,
            kills=options.kills,
            seed=options.seed,
            duration=options.duration,
            rate_limits=options.rate_limits,
        )
    )
    sys.stdout.write(f"seed {options.seed}\n")
    sys.stdout.writelines(f"{line}\n" for line in [*run.runs, *run.violations[:20]])
    sys.stdout.write(f"{len(run.violations)} violations\n")
    return 1 if run.violations else 0


if __name__ == "__main__":
    sys.exit(main())
