"""Polls while the service fails: few of them, and one soon after it is back."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import pytest

from benchmarks.harness import virtual_time
from benchmarks.servers.control_plane import ControlPlane, Settings
from neonctl_async import NeonClient, Operation

BEGIN, END = 10.0, 70.0
PER_PROJECT = 40
"""The most requests to a project in the minute of the outage."""
PART = 700 / 5
"""The most requests of a client in the minute of the outage."""
SOON = 5.0


class Outage:
    """The requests during an outage by project, and when each wait returned."""

    def __init__(self, requests: Mapping[str, int], returned: Sequence[float]) -> None:
        self.requests = requests
        self.returned = returned


def run(
    durations: Mapping[str, Sequence[float]],
    *,
    round_trip: float = 0.05,
    earlier: Sequence[float] = (),
    is_one_wait: bool = True,
) -> Outage:
    """Wait for operations of these durations, by project, during an outage of a minute."""
    settings = Settings(outage=(BEGIN, END), round_trip=round_trip)

    async def main(plane: ControlPlane) -> Outage:
        loop = asyncio.get_running_loop()
        async with NeonClient("napi_key", base_url=virtual_time.BASE_URL) as neon:
            if earlier:
                past = plane.start({f"earlier-{n}": [one] for n, one in enumerate(earlier)})
                await neon.operations.wait(msgspec.json.decode(past, type=list[Operation]))
            records = plane.start({id: list(seconds) for id, seconds in durations.items()})
            started = msgspec.json.decode(records, type=list[Operation])

            async def wait(operations: Sequence[Operation]) -> float:
                await neon.operations.wait(operations)
                return loop.time()

            waits = [started] if is_one_wait else [[one] for one in started]
            returned = await asyncio.gather(*map(wait, waits))
        during = [one for one in plane.report().requests if BEGIN <= one.at < END]
        return Outage(Counter(one.project_id for one in during), returned)

    return virtual_time.run(main, settings)


@pytest.mark.parametrize("earlier", [(), (2.0,) * 8])
@pytest.mark.parametrize("is_one_wait", [True, False])
def test_straggler_costs_few_requests_during_an_outage(
    earlier: Sequence[float], is_one_wait: bool
) -> None:
    outage = run({"p": [2.0] * 5 + [100.0]}, earlier=earlier, is_one_wait=is_one_wait)
    assert outage.requests["p"] <= PER_PROJECT
    assert max(outage.returned) <= 100.0 + 2 * len(earlier) + SOON


def test_outage_costs_all_projects_together_a_fifth_of_the_minute() -> None:
    outage = run({f"p{n}": [2.0] * 5 + [100.0] for n in range(5)}, is_one_wait=False)
    assert sum(outage.requests.values()) <= PART
    assert max(outage.requests.values()) <= PER_PROJECT


@pytest.mark.parametrize("projects", [1, 20, 60, 150])
@pytest.mark.parametrize("seconds", [20.0, 69.0])
def test_end_of_an_outage_is_seen_soon_in_all_projects(projects: int, seconds: float) -> None:
    outage = run({f"p{n}": [seconds] for n in range(projects)}, is_one_wait=False)
    assert sum(outage.requests.values()) <= PART
    assert max(outage.requests.values()) <= PER_PROJECT
    assert max(outage.returned) <= END + SOON
