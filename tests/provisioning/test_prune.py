"""``branches.prune`` deletes the selected branches, and only these, in any state of the project."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from neonctl_async import (
    ClientClosedError,
    EndpointSpec,
    NeonClient,
    NotFoundError,
    OperationFailedError,
    PollPolicy,
    RateBudget,
    RetryPolicy,
    WaitOptions,
)
from neonctl_async.types import Branch, KeptBranch, PruneReport
from neonctl_local import Durations, Fault, LocalControlPlane, ManualClock
from tests.provisioning.helpers import DELETE, branch_names
from tests.support.until import until

READ = "GET /projects/{project_id}/branches/{branch_id}"
DAY = 86400.0


def names(branches: Sequence[Branch]) -> list[str]:
    return [branch.name for branch in branches]


def reasons(kept: Sequence[KeptBranch]) -> dict[str, str]:
    return {one.branch.name: one.reason for one in kept}


async def create(neon: NeonClient, project_id: str, *names: str, **settings: Any) -> list[str]:
    """Create branches and return their ids."""
    created = [
        await neon.branches.create(project_id, name=name, wait=True, **settings) for name in names
    ]
    return [one.branch.id for one in created]


async def create_tree(neon: NeonClient, project_id: str, seed: int) -> None:
    """Create a random tree of branches, some of them protected."""
    chosen = random.Random(seed)
    default = await neon.branches.default(project_id)
    ids = [default.id]
    for number in range(12):
        name = f"{chosen.choice(['preview', 'keep'])}/{number}"
        is_protected = chosen.random() < 0.15
        parent = chosen.choice(ids)
        ids += await create(neon, project_id, name, parent_id=parent, protected=is_protected)
    if chosen.random() < 0.5:
        await neon.branches.set_as_default(project_id, chosen.choice(ids), wait=True)


@pytest.mark.parametrize("seed", range(4))
async def test_dry_run_reports_what_the_next_run_deletes(
    seed: int, neon: NeonClient, project_id: str
) -> None:
    await create_tree(neon, project_id, seed)
    before = {one.id: one async for one in neon.branches.list(project_id)}
    planned = await neon.branches.prune(project_id, name_prefix="preview/")
    assert not planned.applied
    assert {one.id: one async for one in neon.branches.list(project_id)} == before

    gone: list[Branch] = []
    report = await neon.branches.prune(
        project_id, name_prefix="preview/", apply=True, on_deleted=gone.append
    )
    assert report.applied
    assert gone == report.deleted
    assert {one.id for one in report.deleted} == {one.id for one in planned.deleted}
    assert (report.kept, report.failed) == (planned.kept, [])
    left = {one.id: one async for one in neon.branches.list(project_id)}
    assert left.keys() == before.keys() - {one.id for one in gone}
    position = {branch.id: number for number, branch in enumerate(gone)}
    assert all(position.get(one.parent_id or "", 99) > position[one.id] for one in gone)

    again = await neon.branches.prune(project_id, name_prefix="preview/", apply=True)
    assert (again.deleted, again.kept) == ([], report.kept)


async def test_dry_run_only_reads(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await create(neon, project_id, "a", "b")
    before = len(control_plane.requests)
    report = await neon.branches.prune(
        project_id, names=["a", "c", "b", "aa"], idle_for=timedelta(days=1), wait=True
    )
    assert (report.deleted, report.not_found, report.operations) == ([], ["aa", "c"], [])
    sent = [f"{one.method} {one.path}" for one in control_plane.requests[before:]]
    project = f"GET /projects/{project_id}"
    assert [line.partition("?")[0] for line in sent] == [
        f"{project}/branches",
        f"{project}/endpoints",
    ]


async def test_ids_are_accepted_as_names(neon: NeonClient, project_id: str) -> None:
    first, _ = await create(neon, project_id, "a", "b")
    report = await neon.branches.prune(project_id, names=[first, "br-missing-one-12345678"])
    assert names(report.deleted) == ["a"]
    assert report.not_found == ["br-missing-one-12345678"]


@pytest.fixture
def clock() -> ManualClock:
    """A clock that is far from the time of this machine."""
    return ManualClock()


@pytest.fixture
async def old_server(clock: ManualClock) -> AsyncIterator[LocalControlPlane]:
    async with LocalControlPlane(clock=clock, durations=Durations(default=0)) as server:
        yield server


@pytest.fixture
async def old_neon(old_server: LocalControlPlane) -> AsyncIterator[NeonClient]:
    async with NeonClient(
        old_server.api_key, base_url=old_server.base_url, budget=RateBudget.unlimited()
    ) as neon:
        yield neon


async def test_age_is_measured_with_the_clock_of_the_server(
    clock: ManualClock, old_neon: NeonClient
) -> None:
    project_id = (await old_neon.projects.create()).project.id
    await create(old_neon, project_id, "preview/old", "other")
    clock.advance(7 * DAY + 1)
    await create(old_neon, project_id, "preview/new")
    report = await old_neon.branches.prune(
        project_id, pattern="preview/*", older_than=timedelta(days=7), apply=True
    )
    assert names(report.deleted) == ["preview/old"]
    assert reasons(report.kept) == {"preview/new": "it was created 0 seconds ago, less than 7 days"}


async def test_branch_with_a_running_compute_is_kept_until_it_is_idle(
    clock: ManualClock, old_neon: NeonClient
) -> None:
    project_id = (await old_neon.projects.create()).project.id
    await create(old_neon, project_id, "used", endpoints=[EndpointSpec(type="read_write")])
    await create(old_neon, project_id, "unused")
    [compute] = [
        one for one in await old_neon.endpoints.list(project_id) if one.current_state == "active"
    ][1:]
    clock.advance(120)
    idle = timedelta(seconds=60)
    report = await old_neon.branches.prune(project_id, idle_for=idle, apply=True)
    assert names(report.deleted) == ["unused"]
    report = await old_neon.branches.prune(project_id, names=["used"], idle_for=idle)
    assert reasons(report.kept) == {"used": "a compute is running"}

    await old_neon.endpoints.suspend(project_id, compute.id, wait=True)
    clock.advance(120)
    report = await old_neon.branches.prune(project_id, names=["used"], idle_for=idle, apply=True)
    assert names(report.deleted) == ["used"]


async def test_every_other_branch_is_reported_on_request(neon: NeonClient, project_id: str) -> None:
    await create(neon, project_id, "a", "b")
    report = await neon.branches.prune(project_id, name_prefix="a", report_all=True)
    assert reasons(report.kept) == dict.fromkeys(["main", "b"], "its name does not start with 'a'")


@pytest.mark.parametrize("lock", ["branch", "project"])
async def test_deletions_wait_for_locks(lock: Any) -> None:
    async with (
        LocalControlPlane(lock=lock, durations=Durations(default=0.01)) as server,
        NeonClient(
            server.api_key,
            base_url=server.base_url,
            budget=RateBudget.unlimited(),
            polling=PollPolicy(initial=0.02),
            retry=RetryPolicy(initial=0.02),
        ) as neon,
    ):
        project_id = (await neon.projects.create(wait=True)).project.id
        await create(neon, project_id, *"abcd")
        report = await neon.branches.prune(project_id, pattern="[a-d]", apply=True, wait=True)
        assert sorted(names(report.deleted)) == list("abcd")
        assert {one.status for one in report.operations} == {"finished"}
        assert {one.action for one in report.operations} == {"delete_timeline"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"name": "renamed"}, "it has since been renamed to renamed"),
        ({"protected": True}, "it is protected now"),
        ({"expires_at": None}, "it has since changed, at 2026-01-01 00:00:05 UTC"),
    ],
)
async def test_branch_that_changes_before_its_deletion_is_kept_with_its_parent(
    old_server: LocalControlPlane,
    old_neon: NeonClient,
    clock: ManualClock,
    change: dict[str, Any],
    reason: str,
) -> None:
    project_id = (await old_neon.projects.create()).project.id
    [parent] = await create(old_neon, project_id, "parent")
    [child] = await create(old_neon, project_id, "child", parent_id=parent)
    slow = old_server.inject(Fault(route=READ, delay=1.0, times=1))
    pruning = asyncio.create_task(
        old_neon.branches.prune(project_id, names=["parent", "child"], apply=True)
    )
    await until(lambda: slow.fired == 1)
    clock.advance(5)
    await old_neon.branches.update(project_id, child, **change)
    report = await pruning
    assert report.deleted == []
    assert reasons(report.kept) == {
        "child": reason,
        "parent": "its child child remains",
    }


async def test_branch_that_is_used_before_its_deletion_is_kept(
    old_server: LocalControlPlane, old_neon: NeonClient, clock: ManualClock
) -> None:
    project_id = (await old_neon.projects.create()).project.id
    [branch] = await create(old_neon, project_id, "a", endpoints=[EndpointSpec(type="read_write")])
    [compute] = await old_neon.branches.list_endpoints(project_id, branch)
    await old_neon.endpoints.suspend(project_id, compute.id)
    clock.advance(DAY)
    slow = old_server.inject(Fault(route=READ, delay=1.0, times=1))
    pruning = asyncio.create_task(
        old_neon.branches.prune(project_id, names=["a"], idle_for=timedelta(hours=1), apply=True)
    )
    await until(lambda: slow.fired == 1)
    await old_neon.endpoints.start(project_id, compute.id)
    report = await pruning
    assert reasons(report.kept) == {"a": "a compute is running"}


async def test_parent_of_a_new_child_is_kept(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    [grandparent] = await create(neon, project_id, "old-1")
    [parent] = await create(neon, project_id, "old-2", parent_id=grandparent)
    slow = control_plane.inject(Fault(route=DELETE, delay=1.0, times=1))
    pruning = asyncio.create_task(neon.branches.prune(project_id, name_prefix="old", apply=True))
    await until(lambda: slow.fired == 1)
    await create(neon, project_id, "new", parent_id=parent)
    report = await pruning
    assert (report.deleted, report.failed) == ([], [])
    assert reasons(report.kept) == {
        "old-2": "Neon rejected the deletion: a branch with children cannot be deleted",
        "old-1": "its child old-2 remains",
    }


async def test_branch_that_was_deleted_meanwhile_counts_as_deleted(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    [parent] = await create(neon, project_id, "a")
    [child] = await create(neon, project_id, "ab", parent_id=parent)
    slow = control_plane.inject(Fault(route=READ, delay=1.0, times=1))
    pruning = asyncio.create_task(neon.branches.prune(project_id, name_prefix="a", apply=True))
    await until(lambda: slow.fired == 1)
    await neon.branches.delete(project_id, child)
    report = await pruning
    assert names(report.deleted) == ["ab", "a"]
    assert await branch_names(neon, project_id) == ["main"]


async def test_failed_deletion_stops_no_other_deletion(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await create(neon, project_id, *"abc")
    control_plane.inject(Fault(route=DELETE, status=403, message="no", times=1))
    report = await neon.branches.prune(project_id, pattern="?", apply=True)
    [failure] = report.failed
    assert (failure.status, failure.maybe_deleted) == (403, False)
    assert "403 Forbidden: no" in failure.error
    assert sorted([*names(report.deleted), failure.branch.name]) == list("abc")
    assert await branch_names(neon, project_id) == [failure.branch.name, "main"]


async def test_deletion_with_an_unknown_result_is_reported(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    [parent] = await create(neon, project_id, "a")
    await create(neon, project_id, "ab", parent_id=parent)
    control_plane.inject(Fault(route=DELETE, status=500, when="after"))
    report = await neon.branches.prune(project_id, name_prefix="a", apply=True)
    [failure] = report.failed
    assert (failure.branch.name, failure.status, failure.maybe_deleted) == ("ab", 500, True)
    assert list(reasons(report.kept)) == ["a"]


async def test_cancellation_reports_the_deletions_in_a_note(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    [parent] = await create(neon, project_id, "a")
    await create(neon, project_id, "ab", parent_id=parent)
    gone: list[Branch] = []

    def hang_next(branch: Branch) -> None:
        gone.append(branch)
        control_plane.inject(Fault(route=DELETE, hang=True))

    pruning = asyncio.create_task(
        neon.branches.prune(project_id, name_prefix="a", apply=True, on_deleted=hang_next)
    )
    await until(lambda: any(fault.fired for fault in control_plane.faults))
    pruning.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await pruning
    assert caught.value.__notes__ == [
        "deleted 1 of 2 branches: ab; in progress, so perhaps deleted: a"
    ]
    assert names(gone) == ["ab"]


async def test_closed_client_raises_an_error_with_a_note(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await create(neon, project_id, "a", "b")
    slow = control_plane.inject(Fault(route=DELETE, hang=True))
    pruning = asyncio.create_task(neon.branches.prune(project_id, pattern="?", apply=True))
    await until(lambda: slow.fired == 2)
    await neon.aclose()
    with pytest.raises(ClientClosedError) as caught:
        await pruning
    [note] = caught.value.__notes__
    assert note.startswith("deleted 0 of 2 branches; in progress, so perhaps deleted: ")


async def test_timeout_around_the_call_has_the_note(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await create(neon, project_id, "a")
    control_plane.inject(Fault(route=DELETE, hang=True))
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(0.2):
            await neon.branches.prune(project_id, names=["a"], apply=True)
    assert caught.value.__context__ is not None
    assert "perhaps deleted: a" in caught.value.__context__.__notes__[0]


async def test_error_of_on_deleted_is_raised_with_a_note(neon: NeonClient, project_id: str) -> None:
    await create(neon, project_id, "a")

    def fail(_branch: Branch) -> None:
        raise RuntimeError("error of on_deleted")

    with pytest.raises(RuntimeError, match="error of on_deleted") as caught:
        await neon.branches.prune(project_id, names=["a"], apply=True, on_deleted=fail)
    assert caught.value.__notes__ == ["deleted 1 of 1 branches: a"]


async def test_failed_operation_of_a_deletion_has_the_report(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await create(neon, project_id, "a")
    await control_plane.fail_next("delete_timeline")
    with pytest.raises(OperationFailedError) as caught:
        await neon.branches.prune(project_id, names=["a"], apply=True, wait=WaitOptions(timeout=10))
    assert isinstance(caught.value.result, PruneReport)
    assert names(caught.value.result.deleted) == ["a"]
    assert caught.value.__notes__ == ["deleted 1 of 1 branches: a"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, ValueError),
        ({"apply": True, "report_all": True}, ValueError),
        ({"names": "main", "apply": True}, TypeError),
        ({"names": ["main"], "wait": "soon"}, TypeError),
        ({"names": ["main"], "wait": "connect"}, ValueError),
        ({"names": ["main"], "on_deleted": asyncio.sleep}, TypeError),
    ],
)
async def test_invalid_argument_is_rejected_without_a_request(
    control_plane: LocalControlPlane,
    neon: NeonClient,
    project_id: str,
    arguments: dict[str, Any],
    error: type[Exception],
) -> None:
    before = control_plane.requests_served
    with pytest.raises(error):
        await neon.branches.prune(project_id, **arguments)
    assert control_plane.requests_served == before


async def test_unknown_project_is_an_error(neon: NeonClient) -> None:
    with pytest.raises(NotFoundError):
        await neon.branches.prune("late-frost-12345678", names=["a"], apply=True)
