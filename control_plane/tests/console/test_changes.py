"""Watched projects: one task a project, which reports changes and runs due background work."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest

from neonctl_async.testing import loop_clock
from neonctl_local import Durations, ManualClock
from neonctl_local.api.request.calls import Call
from neonctl_local.clock import Clock
from neonctl_local.console.changes import GAP, POLL, RETRY_DELAY, Changes, ProjectChanges
from neonctl_local.engine import accounts, api_keys, watching
from neonctl_local.engine.watching import Observation
from neonctl_local.server.responses import respond
from neonctl_local.server.routes import ROUTES
from neonctl_local.server.tenants import state
from neonctl_local.server.tenants.state import TenantState
from neonctl_local.settings import BackgroundIntervals, Rules
from neonctl_local.storage.tables import Endpoint, Project
from neonctl_local.storage.transactions import Transaction

pytestmark = pytest.mark.virtual_time

NEVER = BackgroundIntervals(
    suspend_after=None, check_availability_every=None, detach_after=None, archive_after_age=None
)


class World:
    """A tenant with one project, on the clock of the event loop."""

    def __init__(self, clock: Clock, intervals: BackgroundIntervals) -> None:
        rules = Rules(durations=Durations(default=4), intervals=intervals)
        self.state = TenantState(clock, rules, None)
        self.changes = Changes()

    async def open(self) -> None:
        await self.state.database.open()
        account = await self.state.database.run(accounts.ensure_first_account)
        key = f"Bearer {account.api_key}"
        self.principal = await self.state.database.read(api_keys.authenticate, key, "")
        self.project_id: str = (await self.request("POST /projects", project={}))["project"]["id"]
        self.branches = f"POST /projects/{self.project_id}/branches"

    # Any: each test knows the shapes of bodies and responses.
    async def request(self, name: str, **body: Any) -> Any:
        """Send a request to the API, without a connection."""
        method, _, path = name.partition(" ")
        template = path.replace(getattr(self, "project_id", "-"), "{project_id}")
        (route,) = [route for route in ROUTES if str(route) == f"{method} {template}"]
        call = Call(
            principal=self.principal,
            path={"project_id": self.project_id} if template != path else {},
            query={},
            content=msgspec.json.encode(body) if body else b"",
        )
        return msgspec.json.decode((await respond(self.state, route, call)).content)

    async def rename(self, name: str) -> None:
        """Rename the project."""
        await self.request(f"PATCH /projects/{self.project_id}", project={"name": name})

    async def row(self) -> Project:
        return await self.state.database.read(lambda tx: tx.get(Project, self.project_id))

    async def compute_state(self) -> str:
        rows = await self.state.database.read(
            lambda tx: tx.select(Endpoint, "WHERE project_id = ?", self.project_id)
        )
        return rows[0].state


MakeWorld = Callable[..., Awaitable[World]]


@pytest.fixture
async def make(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MakeWorld]:
    """A function that opens a world. By default it has no background work."""
    worlds: list[World] = []

    async def make(clock: Clock | None = None, intervals: BackgroundIntervals = NEVER) -> World:
        wall_clock = loop_clock()
        monkeypatch.setattr(state, "utc_now", wall_clock)
        worlds.append(World(clock or wall_clock, intervals))
        await worlds[-1].open()
        await asyncio.sleep(9)  # the first operations finish
        return worlds[-1]

    yield make
    for world in worlds:
        await world.changes.close()
        await world.state.database.close()


@pytest.fixture
def observed(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times of the event loop at which projects were observed."""
    times: list[float] = []
    observe = watching.observe

    def note(tx: Transaction, project_id: str) -> Observation:
        times.append(asyncio.get_running_loop().time())
        return observe(tx, project_id)

    monkeypatch.setattr(watching, "observe", note)
    return times


async def times_of_changes(watched: ProjectChanges, seconds: float) -> list[float]:
    """Return the seconds until each change within a time."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    found: list[float] = []
    try:
        async with asyncio.timeout(seconds):
            while True:
                await watched.changed.wait()
                found.append(loop.time() - start)
    except TimeoutError:
        return found


async def test_steps_of_an_operation_are_reported_at_their_times(make: MakeWorld) -> None:
    world = await make()
    with world.changes.watch(world.state, world.project_id) as watched:
        await asyncio.sleep(1)
        await world.request(world.branches, endpoints=[{"type": "read_write"}])
        times = await times_of_changes(watched, 60)
    # The request, the end of create_branch with the start of start_compute, and the end of that.
    assert times == pytest.approx([0, 4, 8], abs=2 * GAP)
    assert watched.number == 3


async def test_project_that_does_not_change_is_observed_once(
    make: MakeWorld, observed: list[float]
) -> None:
    world = await make()
    with world.changes.watch(world.state, world.project_id) as watched:
        assert await times_of_changes(watched, 3600) == []
    assert len(observed) == 1


async def test_due_time_in_the_future_is_not_polled(make: MakeWorld, observed: list[float]) -> None:
    world = await make(intervals=msgspec.structs.replace(NEVER, detach_after=7200.0))
    with world.changes.watch(world.state, world.project_id):
        await asyncio.sleep(3600)
    assert len(observed) == 1


async def test_change_of_another_project_is_not_reported(make: MakeWorld) -> None:
    world = await make()
    with world.changes.watch(world.state, world.project_id) as watched:
        await asyncio.sleep(1)
        await world.request("POST /projects", project={"name": "other"})
        assert await times_of_changes(watched, 60) == []


async def test_many_writes_are_observed_at_most_ten_times_a_second(
    make: MakeWorld, observed: list[float]
) -> None:
    world = await make()
    with world.changes.watch(world.state, world.project_id) as watched:
        for number in range(200):
            await world.request(
                f"PATCH /projects/{world.project_id}", project={"name": f"{number}"}
            )
            await asyncio.sleep(0.01)
        await times_of_changes(watched, 1)
    assert 15 <= len(observed) <= 25
    assert watched.number <= len(observed)


async def test_viewers_of_a_project_share_a_task(make: MakeWorld, observed: list[float]) -> None:
    world = await make()
    watch = world.changes.watch
    with watch(world.state, world.project_id) as first:
        with watch(world.state, world.project_id) as second:
            assert first is second
        assert len(world.changes) == 1
        await asyncio.sleep(1)
        assert not first.task.done()
    assert len(world.changes) == 0
    await asyncio.sleep(1)
    assert first.task.cancelled()
    assert len(observed) == 1


async def test_idle_compute_is_suspended_while_somebody_watches(make: MakeWorld) -> None:
    world = await make(intervals=msgspec.structs.replace(NEVER, suspend_after=60.0))
    assert await world.compute_state() == "active"
    with world.changes.watch(world.state, world.project_id) as watched:
        times = await times_of_changes(watched, 300)
    assert await world.compute_state() == "idle"
    # suspend_compute starts and finishes.
    assert len(times) == 2
    assert times[1] - times[0] == pytest.approx(4, abs=2 * GAP)


async def test_watching_neither_postpones_a_detachment_nor_ends_it(make: MakeWorld) -> None:
    intervals = msgspec.structs.replace(NEVER, suspend_after=5.0, detach_after=60.0)
    world = await make(intervals=intervals)
    before = (await world.row()).detach_at
    with world.changes.watch(world.state, world.project_id):
        await asyncio.sleep(40)
        assert (await world.row()).detach_at == before
        await asyncio.sleep(3600)
        assert (await world.row()).detached


async def test_clock_of_a_test_is_polled_without_reading_the_database(
    make: MakeWorld, observed: list[float]
) -> None:
    clock = ManualClock()
    world = await make(clock)
    with world.changes.watch(world.state, world.project_id) as watched:
        await asyncio.sleep(60)
        assert len(observed) == 1
        clock.advance(9)
        times = await times_of_changes(watched, 60)
    assert len(times) == 1
    assert times[0] <= POLL + GAP


async def test_failed_observation_is_repeated(
    make: MakeWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = await make()
    with world.changes.watch(world.state, world.project_id) as watched:
        await asyncio.sleep(1)
        with monkeypatch.context() as patch:
            patch.setattr(watching, "observe", None)
            await world.rename("renamed")
            await asyncio.sleep(RETRY_DELAY * 2)
            assert watched.number == 0
        times = await times_of_changes(watched, 60)
    assert len(times) == 1
    messages = [record.message for record in caplog.records]
    assert messages == [f"the pages of project {world.project_id} are not live now"]


async def test_closing_stops_all_tasks(make: MakeWorld) -> None:
    world = await make()
    with world.changes.watch(world.state, world.project_id) as watched:
        await world.changes.close()
        assert watched.task.cancelled()


async def test_missing_project_can_be_watched(make: MakeWorld) -> None:
    world = await make()
    with world.changes.watch(world.state, "no-project-1") as watched:
        assert await times_of_changes(watched, 60) == []
