"""Deletions run in order, a few at a time, and are repeated after lost responses."""

import asyncio
import random
from collections.abc import Sequence

import pytest

from neonctl_async import UNSET, ConnectionLostError, NeonClient, PermissionDeniedError
from neonctl_async.provisioning.deletion import ATTEMPTS, CONCURRENCY, Deletions, delete_branch
from neonctl_async.provisioning.prune_plan import PrunePlan, children_first
from neonctl_async.types import Branch
from neonctl_local import Fault, LocalControlPlane
from neonctl_local.server.faults import When
from tests.provisioning.helpers import DELETE, branch_names, count_requests


async def created(neon: NeonClient, project_id: str, parents: Sequence[int | None]) -> list[Branch]:
    """Create branches. Each number is the position of the parent; None is the default branch."""
    branches: list[Branch] = []
    for number, parent in enumerate(parents):
        parent_id = UNSET if parent is None else branches[parent].id
        response = await neon.branches.create(project_id, name=f"b{number}", parent_id=parent_id)
        branches.append(response.branch)
    return branches


@pytest.mark.parametrize("when", ["before", "after"])
async def test_deletion_with_a_lost_response_is_repeated(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str, when: When
) -> None:
    [branch] = await created(neon, project_id, [None])
    control_plane.inject(Fault(route=DELETE, drop=True, times=ATTEMPTS - 1, when=when))
    await delete_branch(neon.branches, project_id, branch.id)
    assert await branch_names(neon, project_id) == ["main"]
    assert count_requests(control_plane, "DELETE") == ATTEMPTS


async def test_last_lost_response_is_raised(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    [branch] = await created(neon, project_id, [None])
    control_plane.inject(Fault(route=DELETE, drop=True))
    with pytest.raises(ConnectionLostError):
        await delete_branch(neon.branches, project_id, branch.id)
    assert count_requests(control_plane, "DELETE") == ATTEMPTS


async def test_other_failures_are_not_repeated(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    control_plane.inject(Fault(route=DELETE, status=403))
    with pytest.raises(PermissionDeniedError):
        await delete_branch(neon.branches, project_id, "br-1")
    assert count_requests(control_plane, "DELETE") == 1


async def test_deletion_of_a_missing_branch_is_empty(neon: NeonClient, project_id: str) -> None:
    deleted = await delete_branch(neon.branches, project_id, "br-none-12345678")
    assert (deleted.branch, deleted.operations) == (None, [])


async def test_few_branches_are_deleted_at_the_same_time(neon: NeonClient, project_id: str) -> None:
    branches = await created(neon, project_id, [None] * (2 * CONCURRENCY))
    running = 0
    most = 0

    async def count(_branch: Branch) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1

    deletions = Deletions(neon.branches, PrunePlan(branches, []), prepare=count)
    await deletions.run()
    assert most == CONCURRENCY
    assert len(deletions.deleted) == len(branches)


async def test_parent_waits_for_its_children_only(neon: NeonClient, project_id: str) -> None:
    branches = await created(neon, project_id, [None, 0, None, 2])
    other_is_gone = asyncio.Event()

    async def hold_first_child(branch: Branch) -> None:
        if branch.name == "b1":
            await other_is_gone.wait()

    def note(branch: Branch) -> None:
        if branch.name == "b2":
            other_is_gone.set()

    plan = PrunePlan(children_first(branches), [])
    deletions = Deletions(neon.branches, plan, prepare=hold_first_child, on_deleted=note)
    await deletions.run()
    assert [branch.name for branch in deletions.deleted] == ["b3", "b2", "b1", "b0"]


async def test_ancestors_of_a_branch_with_a_reason_are_kept(
    neon: NeonClient, project_id: str
) -> None:
    branches = await created(neon, project_id, [None, 0, 1, 0])

    async def keep(branch: Branch) -> str | None:
        return "a reason" if branch.name == "b2" else None

    deletions = Deletions(neon.branches, PrunePlan(children_first(branches), []), prepare=keep)
    await deletions.run()
    assert [branch.name for branch in deletions.deleted] == ["b3"]
    assert [(one.branch.name, one.reason) for one in deletions.kept] == [
        ("b2", "a reason"),
        ("b1", "its child b2 remains"),
        ("b0", "its child b1 remains"),
    ]


@pytest.mark.parametrize("seed", range(3))
async def test_no_ancestor_of_a_kept_or_failed_branch_is_deleted(
    seed: int, control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    chosen = random.Random(seed)
    parents = [chosen.choice([None, *range(number)]) for number in range(12)]
    branches = await created(neon, project_id, parents)
    control_plane.inject(Fault(route=DELETE, status=403, probability=0.2, seed=seed))

    async def keep_some(_branch: Branch) -> str | None:
        await asyncio.sleep(chosen.random() / 100)
        return "a reason" if chosen.random() < 0.2 else None

    deletions = Deletions(neon.branches, PrunePlan(children_first(branches), []), prepare=keep_some)
    await deletions.run()
    deleted = {branch.id for branch in deletions.deleted}
    left = [kept.branch for kept in deletions.kept]
    left += [failure.branch for failure in deletions.failed]
    assert len(deleted) + len(left) == len(branches)
    assert all(branch.parent_id not in deleted for branch in left)
    assert set(await branch_names(neon, project_id)) == {"main", *(one.name for one in left)}


async def test_summary_names_at_most_20_branches(neon: NeonClient, project_id: str) -> None:
    [branch] = await created(neon, project_id, [None])

    async def fail(_branch: Branch) -> str | None:
        raise RuntimeError("not called")

    deletions = Deletions(neon.branches, PrunePlan([branch], []), prepare=fail)
    deletions.deleted += [branch] * 25
    assert deletions.summary().endswith(", b0, and 5 more")
