"""Runs a load on the fake clock, and measures it."""

import asyncio
import itertools
import statistics
from collections.abc import Sequence

import msgspec

from benchmarks.harness import virtual_time
from benchmarks.loads.load import Branch, Load
from benchmarks.loads.oracle import Optimum, optimum
from benchmarks.servers.control_plane import CREATE, ControlPlane, Received, Report
from neonctl_async import (
    NeonClient,
    NeonError,
    Operation,
    PollPolicy,
    RateBudget,
    WaitTimeoutError,
)

API_KEY = "napi_benchmark"
WAIT = 900.0
"""The time limit of each wait, in seconds."""
SCARCE = 6 / 7
"""The oracle's share of the limit per minute up to which waits may not be late (600 of 700)."""
MIN_RATE = 0.9
MAX_REQUESTS = 1.3
REQUESTS_PER_PROJECT = 2
LATE_IN_TURN = 1.0
"""The allowed lateness of each creation in a locked project, in seconds."""


class Wait(msgspec.Struct, frozen=True):
    """A wait: when its branch was created, its last operation finished, and its call returned."""

    project_id: str
    created: float
    finished: float
    returned: float
    name: str = ""
    timed_out: bool = False

    @property
    def lateness(self) -> float:
        """The time from the end of the last operation to the end of the call."""
        return self.returned - self.finished


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a run of a load. Times are in seconds since its start."""

    load: Load
    oracle: Optimum
    waits: list[Wait]
    failures: list[str]
    requests: list[Received]

    @property
    def finished(self) -> float:
        """The end of the last operation."""
        return max((wait.finished for wait in self.waits), default=0.0)

    @property
    def delay(self) -> float:
        """The time from the end of the last operation to the end of the last wait."""
        return max((wait.returned for wait in self.waits), default=0.0) - self.finished

    @property
    def lateness(self) -> list[float]:
        """The lateness of all waits, in order."""
        return sorted(wait.lateness for wait in self.waits)

    @property
    def polls(self) -> int:
        """The number of polls."""
        return sum(one.route != CREATE for one in self.requests)

    @property
    def refused(self) -> int:
        """The number of responses of 429."""
        return sum(one.status == 429 for one in self.requests)

    @property
    def allowed_requests(self) -> float:
        """The largest number of requests that meets the target."""
        if self.load.max_requests is not None:
            return self.load.max_requests
        per_project = REQUESTS_PER_PROJECT * len(self.load.projects)
        return MAX_REQUESTS * self.oracle.requests + per_project

    @property
    def is_scarce(self) -> bool:
        """True if even the oracle needs most of the limit, so that only the rate is limited."""
        return self.oracle.requests > SCARCE * self.load.available

    @property
    def rate(self) -> float:
        """The share of the useful limit that was used until the last operation finished.

        The limit is what is available in each minute. A run of less than a minute may use all of
        the first one. No more than the oracle's requests is useful.
        """
        used = sum(one.at <= self.finished and one.status != 429 for one in self.requests)
        limit = self.load.available * max(self.finished, 60.0) / 60.0
        return used / min(limit, self.oracle.requests)

    @property
    def beyond_serial(self) -> dict[str, float]:
        """The time by which each project returned later than its serial work requires."""
        returned: dict[str, float] = {}
        for wait in self.waits:
            returned[wait.project_id] = max(wait.returned, returned.get(wait.project_id, 0.0))
        ends = self.load.serial_ends
        return {project_id: at - ends[project_id] for project_id, at in returned.items()}

    @property
    def allowed_beyond_serial(self) -> float | None:
        """The longest time beyond the serial work that meets the target; None without a target.

        In many projects, the time also depends on the limits and the creations elsewhere.
        """
        is_one_project = len(self.load.projects) == 1
        return LATE_IN_TURN * len(self.load.branches) if is_one_project else None

    def polls_by_project(self) -> dict[str, list[float]]:
        """Return the times at which each project was polled."""
        polls: dict[str, list[float]] = {project_id: [] for project_id in self.load.projects}
        for one in self.requests:
            if one.route != CREATE:
                polls[one.project_id].append(one.at)
        return polls

    def longest_gap(self) -> float:
        """Return the longest time for which a project with a pending wait was not polled."""
        polls = self.polls_by_project()
        return max(
            (
                _longest_gap([wait for wait in self.waits if wait.project_id == id], times)
                for id, times in polls.items()
            ),
            default=0.0,
        )

    def criteria(self) -> dict[str, bool]:
        """Return whether each criterion is met. Those that do not apply are left out."""
        criteria = {"all succeed": not self.failures}
        if not self.load.settings.others_per_second:
            criteria["no 429"] = not self.refused
        if self.load.settings.locks_projects:
            if (allowed := self.allowed_beyond_serial) is not None:
                criteria[f"{allowed:g} s beyond serial"] = (
                    max(self.beyond_serial.values()) <= allowed
                )
        elif self.is_scarce:
            criteria[f"rate {MIN_RATE:.0%}"] = self.rate >= MIN_RATE
        else:
            criteria[f"within {self.load.max_delay:g} s"] = self.delay <= self.load.max_delay
            criteria["requests"] = len(self.requests) <= self.allowed_requests
        return criteria


class Calls(msgspec.Struct, frozen=True):
    """The time on the loop's clock at which each branch's call returned, and the errors."""

    returned: dict[str, float]
    failures: list[str]
    timed_out: frozenset[str] = frozenset()
    """The branches whose wait reached its timeout."""


def run(load: Load, seed: int = 0, polling: PollPolicy | None = None) -> Outcome:
    """Run a load on the fake clock, with a new client that has the budget of the account."""

    async def main(plane: ControlPlane) -> Outcome:
        budget = RateBudget(per_minute=load.per_minute)
        async with NeonClient(
            API_KEY,
            base_url=virtual_time.BASE_URL,
            budget=budget,
            polling=polling or PollPolicy(),
        ) as neon:
            if load.is_one_wait:
                return await _wait_for_all(neon, plane, load)
            return evaluate(load, await create_all(neon, load), plane.report())

    return virtual_time.run(main, load.settings, seed)


async def create_all(neon: NeonClient, load: Load) -> Calls:
    """Create each branch when it arrives, and wait for its operations."""
    failures: list[str] = []
    returned: dict[str, float] = {}
    timed_out: set[str] = set()

    async def create(branch: Branch) -> None:
        await asyncio.sleep(branch.arrives)
        try:
            await neon.branches.create(
                branch.project_id, name=branch.name, wait=branch.timeout or WAIT
            )
        except WaitTimeoutError:
            timed_out.add(branch.name)
        except NeonError as error:
            failures.append(f"{branch.name}: {error!r}")
        returned[branch.name] = asyncio.get_running_loop().time()

    await asyncio.gather(*(create(branch) for branch in load.branches))
    return Calls(returned, failures, frozenset(timed_out))


def evaluate(load: Load, calls: Calls, report: Report) -> Outcome:
    """Return the outcome of a run."""
    waits = [
        Wait(
            project_id=branch.project_id,
            created=life.created,
            finished=life.finishes,
            returned=calls.returned[branch.name],
            name=branch.name,
            timed_out=branch.name in calls.timed_out,
        )
        for branch in load.branches
        if (life := report.branches.get(branch.name)) is not None
    ]
    return Outcome(
        load=load,
        oracle=optimum(load),
        waits=waits,
        failures=calls.failures,
        requests=report.requests,
    )


async def _wait_for_all(neon: NeonClient, plane: ControlPlane, load: Load) -> Outcome:
    durations: dict[str, list[float]] = {}
    for branch in load.branches:
        durations.setdefault(branch.project_id, []).append(branch.seconds)
    started = msgspec.json.decode(plane.start(durations), type=list[Operation])
    now = asyncio.get_running_loop().time
    since = now()
    await neon.operations.wait(started, timeout=WAIT)
    returned = now()
    report = plane.report()
    waits = [Wait(one.project_id, since, report.finishes[one.id], returned) for one in started]
    return Outcome(
        load=load, oracle=optimum(load), waits=waits, failures=[], requests=report.requests
    )


def _longest_gap(waits: Sequence[Wait], polls: Sequence[float]) -> float:
    """Return the longest time without a poll while one of these waits of a project was pending."""
    longest = 0.0
    since = until = 0.0
    for wait in sorted(waits, key=lambda one: one.created):
        if wait.created > until:
            since = wait.created
        until = max(until, wait.returned)
        points = [since, *(at for at in polls if since < at < until), until]
        longest = max(longest, *(b - a for a, b in itertools.pairwise(points)))
    return longest


def percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile of sorted values."""
    if len(values) < 2:
        return values[0] if values else 0.0
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
