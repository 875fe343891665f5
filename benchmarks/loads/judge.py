"""The loads that judge the waits of a client. No rule and no number was tuned on them.

The catalogue tunes. It draws fan-outs of many shapes, most of them at 700 requests a minute. The
judge has other families, other limits and other seeds. It compares the default policy with
``PollPolicy.constant(n)`` on the same client. The policies differ in the times of their polls only.
"""

import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from random import Random

import msgspec

from benchmarks.loads.catalogue import PER_ROUTE_PER_SECOND
from benchmarks.loads.load import Branch, Load, branch_name
from benchmarks.loads.measure import Outcome, run
from benchmarks.loads.shapes import SHAPES, Shape, uniform
from benchmarks.servers.control_plane import GET, LIST, Settings
from benchmarks.servers.limits import SlidingWindow
from neonctl_async import PollPolicy

DEFAULT = "default"
POLICIES: Mapping[str, PollPolicy] = {
    DEFAULT: PollPolicy(),
    **{f"constant({n})": PollPolicy.constant(n) for n in (1.0, 2.0, 3.0, 5.0)},
}
SEED = 100
"""The seed that judges. Smaller ones are for tuning."""
LOCKED = "locked"
"""The family of locked projects. Its lateness is no one's wait, so the row of all is without it."""
FLOOR = 0.2
"""The mean lateness below which loads do not differ, in seconds."""
JUST = 0.5
"""The time before its deadline within which an operation may finish unseen, in seconds."""
MAX_LATENESS = 0.6
"""The largest lateness over all, as a share of that of the best constant."""
MAX_REQUESTS = 1.1
"""The largest number of requests over all, as a multiple of that of the best constant."""


class Score(msgspec.Struct, frozen=True):
    """The results of a policy on a load. Times are in seconds."""

    family: str
    load: str
    policy: str
    lateness: float
    """The mean time by which calls return later than those of a client without any polls could.

    Of locked projects: by which they return later than their serial work.
    """
    after_end: float
    """The mean time from the end of the last operation to the end of the call."""
    worst: float
    requests: int
    refused: int
    """The responses of 429 that no other client has caused."""
    unjust: int
    """The waits that timed out although their operations had finished JUST before."""
    cpu: float


def families(seed: int) -> Mapping[str, Sequence[Load]]:
    """Return the loads of a seed by family."""
    return {
        "steady": [
            _steady(f"{rate} a second in {projects}", rng, rate, projects, 90.0, _always(shape))
            for rate, projects, shape in (
                (2, 5, SHAPES["heavy"]),
                (4, 1, uniform(2.0, 5.0)),
                (6, 3, SHAPES["lognormal"]),
                (8, 20, uniform(1.0, 4.0)),
            )
            for rng in [Random(f"{seed} steady {rate}")]
        ],
        "steps": [
            _steady(
                f"{before:g} s, then {after:g} s, in {projects}",
                rng,
                2,
                projects,
                90.0,
                _step(before, after, 45.0),
            )
            for before, after, projects in ((8.0, 1.0, 2), (1.0, 8.0, 20), (6.0, 1.5, 60))
            for rng in [Random(f"{seed} steps {before} {projects}")]
        ],
        "drifts": [
            _steady(f"{first:g} to {last:g} s in 10", rng, 3, 10, 90.0, _drift(first, last, 90.0))
            for first, last in ((1.0, 9.0), (9.0, 1.0))
            for rng in [Random(f"{seed} drift {first}")]
        ],
        "deadlines": [_deadlines(seed, 100, 700), _deadlines(seed, 40, 300)],
        "spent": [
            _burst(seed, 60, 60, uniform(1.0, 5.0), per_minute=700, spent=600),
            _burst(seed, 30, 10, SHAPES["lognormal"], per_minute=300, spent=250),
        ],
        "neighbours": [
            _burst(seed, 100, 50, uniform(1.0, 6.0), over=30.0, others_per_second=6.0),
            _burst(seed, 40, 40, SHAPES["lognormal"], over=60.0, others_per_second=9.0),
        ],
        "bursts": [
            _bursts(seed, 25, 50, uniform(1.0, 4.0)),
            _bursts(seed, 40, 8, SHAPES["two humps"]),
        ],
        "small limits": [
            _burst(seed, 40, 20, uniform(2.0, 6.0), over=90.0, per_minute=100),
            _burst(seed, 60, 60, SHAPES["lognormal"], over=120.0, per_minute=200),
            _burst(seed, 12, 6, uniform(1.0, 3.0), per_minute=60),
        ],
        "fan-out": [
            _burst(seed, 120, 120, SHAPES["heavy"]),
            _burst(seed, 240, 80, SHAPES["straggler"]),
            _burst(seed, 150, 30, uniform(3.0, 12.0)),
        ],
        "distances": [
            _deadlines(seed, 30, 700, round_trip=0.02, jitter=0.5),
            _burst(seed, 40, 20, SHAPES["lognormal"], over=30.0, round_trip=0.1, jitter=0.5),
            _deadlines(seed, 20, 700, round_trip=0.25, jitter=0.5),
        ],
        LOCKED: [
            _burst(seed, 12, 1, uniform(1.0, 4.0), round_trip=0.05, locks_projects=True),
            _burst(seed, 40, 20, SHAPES["lognormal"], round_trip=0.05, locks_projects=True),
            _burst(seed, 40, 10, SHAPES["two humps"], over=30.0, locks_projects=True),
        ],
        "2,000 in 1,000": [_burst(seed, 2000, 1000, uniform(1.0, 6.0), over=420.0)],
    }


Durations = Callable[[Random, float], float]
"""Draws the duration of an operation that starts at a time."""


def _always(shape: Shape) -> Durations:
    return lambda rng, _: shape(rng)


def _step(before: float, after: float, at: float) -> Durations:
    return lambda rng, now: (before if now < at else after) * rng.uniform(0.9, 1.1)


def _drift(first: float, last: float, over: float) -> Durations:
    return lambda rng, now: (first + (last - first) * now / over) * rng.uniform(0.8, 1.2)


def _load(name: str, branches: Iterable[Branch], **settings: object) -> Load:
    limits: dict[str, object] = {"per_minute": 700, "per_route_per_second": PER_ROUTE_PER_SECOND}
    return Load(
        name=name,
        branches=tuple(branches),
        settings=msgspec.convert({**limits, **settings}, Settings),
    )


def _branch(
    number: int, project: int, arrives: float, seconds: float, timeout: float | None = None
) -> Branch:
    stages = ((seconds,),)
    return Branch(branch_name(number, stages), f"p{project}", arrives, stages, timeout)


def _steady(
    name: str, rng: Random, rate: float, projects: int, over: float, shape: Durations
) -> Load:
    """Return creations at a constant rate."""
    branches: list[Branch] = []
    for number in range(int(rate * over)):
        at = number / rate
        branches.append(_branch(number, number % projects, at, shape(rng, at)))
    return _load(name, branches)


def _burst(
    seed: int, branches: int, projects: int, shape: Shape, *, over: float = 0.0, **settings: object
) -> Load:
    """Return branches that arrive at random times within ``over`` seconds."""
    words = ", ".join(f"{name} {value:g}" for name, value in settings.items())
    name = f"{branches} in {projects}" + (f" over {over:g} s" if over else "")
    name = f"{name}, {words}" if words else name
    rng = Random(f"{seed} {name}")
    arrivals = sorted(rng.uniform(0.0, over) for _ in range(branches))
    each = (
        _branch(number, number % projects, at, shape(rng)) for number, at in enumerate(arrivals)
    )
    return _load(name, each, **settings)


def _bursts(seed: int, branches: int, projects: int, shape: Shape) -> Load:
    """Return six bursts, one each 15 s."""
    rng = Random(f"{seed} bursts {branches}")
    each = (
        _branch(number, rng.randrange(projects), 15.0 * (number // branches), shape(rng))
        for number in range(6 * branches)
    )
    return _load(f"6 bursts of {branches} in {projects}", each)


def _deadlines(seed: int, projects: int, per_minute: int, **settings: object) -> Load:
    """Return an operation in each project, which finishes 1 to 3 s before its own deadline."""
    rng = Random(f"{seed} deadlines {projects}")
    timeouts = [rng.uniform(10.0, 25.0) for _ in range(projects)]
    each = (
        _branch(number, number, 0.0, timeout - rng.uniform(1.0, 3.0), timeout)
        for number, timeout in enumerate(timeouts)
    )
    name = f"{projects} in {projects}, {per_minute} a minute"
    return _load(name, each, per_minute=per_minute, **settings)


def score(family: str, load: Load, policy: str) -> Score:
    """Run a load with a policy."""
    started = time.process_time()
    outcome = run(load, polling=POLICIES[policy])
    late = excess(outcome)
    is_alone = not (load.settings.others_per_second or load.settings.spent)
    return Score(
        family,
        load.name,
        policy,
        statistics.mean(late),
        statistics.mean(outcome.lateness),
        max(late),
        len(outcome.requests),
        outcome.refused if is_alone else 0,
        unjust_timeouts(outcome),
        time.process_time() - started,
    )


def excess(outcome: Outcome) -> list[float]:
    """Return by how much each call returned later than necessary.

    Necessary are the duration of its operations, and the delay of its creation that the limits
    require for creations alone. A client that polls much delays creations, which would otherwise
    look like a success.

    In locked projects, creations wait for each other. Return by how much each project was later
    than its serial work.
    """
    load = outcome.load
    if load.settings.locks_projects:
        return list(outcome.beyond_serial.values())
    account = SlidingWindow(load.available, 60.0)
    route = SlidingWindow(load.settings.per_route_per_second, 1.0)
    for number in range(load.settings.spent):
        account.take(60.0 * (number / load.settings.spent - 1))
    ends: dict[str, float] = {}
    now = 0.0
    for branch in sorted(load.branches, key=lambda one: one.arrives):
        now = max(now, branch.arrives)
        now += max(account.delay(now), route.delay(now))
        account.take(now)
        route.take(now)
        ends[branch.name] = now + branch.seconds
    return [wait.returned - ends[wait.name] for wait in outcome.waits]


def unjust_timeouts(outcome: Outcome) -> int:
    """Return how many waits timed out although their operations finished JUST before.

    A wait for which the limits left no slot at its deadline does not count.
    """
    return sum(
        wait.timed_out and wait.lateness >= JUST and _has_slot(outcome, wait.returned)
        for wait in outcome.waits
    )


def _has_slot(outcome: Outcome, deadline: float) -> bool:
    """Return whether the limits allowed a poll of each kind in the last moments of a wait."""
    limit = outcome.load.settings.per_route_per_second or math.inf
    sent = [one for one in outcome.requests if one.at < deadline]
    last_second = Counter(one.route for one in sent if one.at > deadline - 1.0)
    last_minute = sum(one.at > deadline - 60.0 for one in sent)
    is_route_free = all(last_second[route] < limit for route in (GET, LIST))
    return is_route_free and last_minute < outcome.load.available


def scores(
    seed: int, policies: Sequence[str], only: str = "", processes: int = 2
) -> Iterator[Score]:
    """Yield the scores of all loads whose family or name contains ``only``."""
    runs = [
        (family, load, policy)
        for family, loads in families(seed).items()
        for load in loads
        for policy in policies
        if only in f"{family}: {load.name}"
    ]
    if processes == 1:
        yield from (score(*one) for one in runs)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(score, *zip(*runs, strict=True))


def lateness(found: Iterable[Score]) -> float:
    """Return the geometric mean of the lateness of loads."""
    return statistics.geometric_mean(max(one.lateness, FLOOR) for one in found)


def requests(found: Iterable[Score]) -> float:
    """Return the geometric mean of the requests of loads."""
    return statistics.geometric_mean(one.requests for one in found)


def table(found: Sequence[Score]) -> Iterator[str]:
    """Yield the lines of a table: a family each, and all of them."""
    policies = list(dict.fromkeys(one.policy for one in found))
    yield "family".ljust(16) + "".join(f"{name:>22}" for name in policies) + "   429  unjust   cpu"
    names = list(dict.fromkeys(one.family for one in found))
    for family in [*names, "all"] if names != [LOCKED] else names:
        those = [
            one
            for one in found
            if one.family == family or (family == "all" and one.family != LOCKED)
        ]
        cells = [[one for one in those if one.policy == policy] for policy in policies]
        late = [lateness(cell) for cell in cells]
        line = family.ljust(16)
        line += "".join(
            f"{a:9.2f} s {requests(b):7.0f} req" for a, b in zip(late, cells, strict=True)
        )
        line += (
            f"  {sum(one.refused for one in cells[0]):4}  {sum(one.unjust for one in cells[0]):6}"
        )
        line += f"  {sum(one.cpu for one in cells[0]):4.1f}"
        if len(policies) > 1:
            limit = MAX_LATENESS if family == "all" else 1.0
            best = min(range(1, len(policies)), key=late.__getitem__)
            share = late[0] / late[best]
            line += f"  {share:.2f} of {policies[best]}"
            if family == "all":
                more = requests(cells[0]) / requests(cells[best])
                line += f", requests {more:.2f}" + (" MISSED" if more > MAX_REQUESTS else "")
            line += " MISSED" if share > limit else ""
        yield line


def step_lateness(seed: int) -> float:
    """Return the median lateness from 15 s after a step from 8 s to 1 s on."""
    rng = Random(f"{seed} step")
    outcome = run(_steady("8 s, then 1 s", rng, 2, 2, 120.0, _step(8.0, 1.0, 60.0)))
    return statistics.median(one.lateness for one in outcome.waits if one.created >= 75.0)


def steady_creates(seed: int, projects: int) -> tuple[float, float]:
    """Return the median lateness of 3,000 creates over 280 s, and their CPU time."""
    rng = Random(f"{seed} creates")
    load = _steady("3,000 creates", rng, 10.72, projects, 280.0, _always(uniform(1.0, 3.0)))
    started = time.process_time()
    outcome = run(load)
    return statistics.median(outcome.lateness), time.process_time() - started
