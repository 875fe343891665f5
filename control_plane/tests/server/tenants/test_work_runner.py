"""Running the work of operations: in order, with the reason of a failure, and again later."""

import asyncio
import logging
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from control_plane.tests.driven import DrivenControlPlane
from neonctl_local import Durations
from neonctl_local.engine.work import CreateCluster, StartCompute, Work
from neonctl_local.errors import StorageFullError
from neonctl_local.postgres.errors import ClusterError, PostgresUnavailableError
from neonctl_local.server.tenants import work_runner
from neonctl_local.server.tenants.work_runner import WorkRunner
from neonctl_local.storage.transactions import Transaction
from tests.support.clock import now
from tests.support.until import until


class Performer:
    """Performs work by noting it. A failure is raised once; ``hold`` makes work wait."""

    def __init__(self) -> None:
        self.done: list[Work] = []
        self.failure: Exception | None = None
        self.hold = asyncio.Event()
        self.hold.set()

    async def __call__(self, work: Work) -> None:
        await self.hold.wait()
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure
        self.done.append(work)


@pytest.fixture
def plane() -> DrivenControlPlane:
    """A control plane whose operations take no time of their own."""
    return DrivenControlPlane(durations=Durations(default=0))


@pytest.fixture
async def performer() -> Performer:
    """Performs the work of the runner."""
    return Performer()


@pytest.fixture
async def runner(plane: DrivenControlPlane, performer: Performer) -> AsyncIterator[WorkRunner]:
    """A runner, which the test starts."""
    with plane:
        runner = WorkRunner(plane.database, performer)
        yield runner
        await runner.stop()


def create_project(plane: DrivenControlPlane) -> str:
    created = plane.request("POST", "/projects", {"project": {}})
    return str(created["project"]["id"])


async def settled(plane: DrivenControlPlane, project_id: str) -> list[tuple[str, str, str | None]]:
    """Wait until no operation is pending. Return action, status and error of each operation."""

    def is_settled() -> bool:
        operations = plane.operations(project_id)
        return not {operation["status"] for operation in operations} & {"running", "scheduling"}

    await until(is_settled)
    return [
        (operation["action"], operation["status"], operation.get("error"))
        for operation in plane.operations(project_id)
    ]


async def test_operations_of_a_request_run_one_after_the_other(
    plane: DrivenControlPlane, performer: Performer, runner: WorkRunner
) -> None:
    project_id = create_project(plane)
    performer.hold.clear()
    runner.start()
    await asyncio.sleep(0.02)
    statuses = [operation["status"] for operation in plane.operations(project_id)]
    assert statuses == ["running", "scheduling"]
    performer.hold.set()
    assert await settled(plane, project_id) == [
        ("create_timeline", "finished", None),
        ("start_compute", "finished", None),
    ]
    assert [type(work) for work in performer.done] == [CreateCluster, StartCompute]


async def test_new_work_starts_when_the_runner_is_woken(
    plane: DrivenControlPlane, performer: Performer, runner: WorkRunner
) -> None:
    runner.start()
    await asyncio.sleep(0.01)
    project_id = create_project(plane)
    runner.wake()
    await settled(plane, project_id)
    assert len(performer.done) == 2


async def test_work_that_ends_during_a_read_is_not_done_again(
    plane: DrivenControlPlane,
    performer: Performer,
    runner: WorkRunner,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The threads that read a file may return what was true before the newest write."""
    read, began, goes_on = plane.database.read, asyncio.Event(), asyncio.Event()

    async def late_read(function: Callable[[Transaction], object]) -> object:
        result = await read(function)
        began.set()
        await goes_on.wait()
        return result

    project_id = create_project(plane)
    performer.hold.clear()
    runner.start()
    await asyncio.sleep(0.02)
    monkeypatch.setattr(plane.database, "read", late_read)
    runner.wake()
    await began.wait()
    performer.hold.set()
    await until(lambda: plane.operations(project_id)[0]["status"] == "finished")
    await asyncio.sleep(0)  # the task of the work ends
    goes_on.set()
    await settled(plane, project_id)
    assert [type(work) for work in performer.done] == [CreateCluster, StartCompute]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="new in Python 3.12")
@pytest.mark.virtual_time  # uvloop 0.23 cannot create eager tasks
async def test_work_that_is_done_at_once_by_eager_tasks_is_followed_by_the_next(
    plane: DrivenControlPlane, performer: Performer, runner: WorkRunner
) -> None:
    if sys.version_info >= (3, 12):  # for the type checkers
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    project_id = create_project(plane)
    runner.start()
    await settled(plane, project_id)
    assert len(performer.done) == 2


@pytest.mark.parametrize("kind", [ClusterError, PostgresUnavailableError])
async def test_operation_fails_with_the_reason_and_the_next_one_does_not_start(
    plane: DrivenControlPlane, performer: Performer, runner: WorkRunner, kind: type[Exception]
) -> None:
    project_id = create_project(plane)
    performer.failure = kind("no space left on the device")
    runner.start()
    assert await settled(plane, project_id) == [
        ("create_timeline", "failed", "no space left on the device"),
        ("start_compute", "failed", "not started: the operation before it did not finish"),
    ]
    assert performer.done == []


async def test_unexpected_exception_is_logged_and_not_shown(
    plane: DrivenControlPlane,
    performer: Performer,
    runner: WorkRunner,
    caplog: pytest.LogCaptureFixture,
) -> None:
    project_id = create_project(plane)
    performer.failure = RuntimeError("a secret detail")
    runner.start()
    [(_, status, error), _] = await settled(plane, project_id)
    assert (status, error) == ("failed", "internal error of the local control plane: see its log")
    assert "a secret detail" in caplog.text


async def test_interrupted_work_is_done_by_the_next_runner(
    plane: DrivenControlPlane, performer: Performer, runner: WorkRunner
) -> None:
    project_id = create_project(plane)
    performer.hold.clear()
    runner.start()
    await asyncio.sleep(0.01)
    await runner.stop()
    assert performer.done == []
    performer.hold.set()
    runner.start()
    assert {status for _, status, _ in await settled(plane, project_id)} == {"finished"}


async def test_waiters_are_notified_of_a_settled_operation(
    plane: DrivenControlPlane, runner: WorkRunner
) -> None:
    changed = runner.changed
    project_id = create_project(plane)
    runner.start()
    await changed.wait()
    await settled(plane, project_id)


async def test_work_continues_after_errors_of_the_data_file(
    plane: DrivenControlPlane,
    performer: Performer,
    runner: WorkRunner,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    project_id = create_project(plane)
    monkeypatch.setattr(work_runner, "RETRY_DELAY", 0.001)
    caplog.set_level(logging.INFO, work_runner.__name__)
    failures = [True, False, True, True]

    # The arguments pass through.
    def failing_at_first(transact: Any) -> Any:
        async def fail_at_first(*arguments: Any, **options: Any) -> object:
            if failures and failures.pop(0):
                raise sqlite3.OperationalError("disk I/O error")
            return await transact(*arguments, **options)

        return fail_at_first

    with monkeypatch.context() as patch:
        patch.setattr(plane.database, "read", failing_at_first(plane.database.read))
        patch.setattr(plane.database, "spend", failing_at_first(plane.database.spend))
        runner.start()
        await until(lambda: not failures)
    assert {status for _, status, _ in await settled(plane, project_id)} == {"finished"}
    assert len(performer.done) == 2
    assert "disk I/O error" in caplog.text
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"] * 2


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("failure", "logged"),
    [
        (sqlite3.OperationalError("disk I/O error"), 1),
        (StorageFullError("the database itself warns"), 0),
    ],
)
async def test_lasting_error_of_the_data_file_is_logged_once_and_tried_less_often(
    performer: Performer, caplog: pytest.LogCaptureFixture, failure: Exception, logged: int
) -> None:
    attempts: list[float] = []

    class Broken:
        async def read(self, *_arguments: object) -> None:
            attempts.append(now())
            raise failure

    broken: Any = Broken()  # the runner reads first
    runner = WorkRunner(broken, performer)
    runner.start()
    await asyncio.sleep(600)
    await runner.stop()
    assert len(caplog.records) == logged
    assert len(attempts) < 30
    assert attempts[1] - attempts[0] == pytest.approx(0.5)
    assert attempts[-1] - attempts[-2] == pytest.approx(30)
