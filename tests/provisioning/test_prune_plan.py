"""A plan deletes children before parents, and keeps every branch that must stay."""

from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from neonctl_async.provisioning.prune_plan import (
    change_since,
    children_first,
    make_plan,
    with_descendants,
)
from neonctl_async.types import Branch
from tests.provisioning.trees import tree_branch, trees

MAIN = tree_branch(0, None, default=True)


def reasons(branches: Sequence[Branch], *selected: int) -> dict[str, str]:
    plan = make_plan(branches, {f"br-{number}" for number in selected}, {})
    return {kept.branch.id: kept.reason for kept in plan.kept}


def ancestors(branch: Branch, branches: Sequence[Branch]) -> Iterator[Branch]:
    by_id = {one.id: one for one in branches}
    parent = by_id.get(branch.parent_id or "")
    if parent is not None:
        yield parent
        yield from ancestors(parent, branches)


def ids(branches: Collection[Branch]) -> set[str]:
    return {branch.id for branch in branches}


def selections(branches: Sequence[Branch]) -> st.SearchStrategy[set[str]]:
    return st.sets(st.sampled_from([*sorted(ids(branches)), "br-none"]))


@given(st.data(), trees())
def test_plan_keeps_default_protected_and_root_branches_and_ancestors_of_kept_branches(
    data: st.DataObject, branches: list[Branch]
) -> None:
    selected = data.draw(selections(branches))
    plan = make_plan(branches, selected, {})
    deleted = ids(plan.deleted)
    assert len(deleted) == len(plan.deleted)
    assert deleted <= selected
    for branch in branches:
        if branch.id in deleted:
            assert not branch.default
            assert not branch.protected
            assert branch.parent_id is not None
        else:
            assert not deleted & ids(list(ancestors(branch, branches)))
    # Every selected branch has a result, and no other branch.
    assert deleted | ids([kept.branch for kept in plan.kept]) == selected & ids(branches)


@given(st.data(), trees())
def test_plan_deletes_every_selected_branch_that_nothing_keeps(
    data: st.DataObject, branches: list[Branch]
) -> None:
    selected = data.draw(selections(branches))
    deleted = ids(make_plan(branches, selected, {}).deleted)
    kept = [branch for branch in branches if branch.id not in deleted]
    needed = {one.id for branch in kept for one in ancestors(branch, branches)}
    for branch in kept:
        assert (
            branch.id not in selected
            or branch.default
            or branch.protected
            or branch.parent_id is None
            or branch.id in needed
        )


@given(trees())
def test_children_come_before_their_parents(branches: list[Branch]) -> None:
    ordered = children_first(branches)
    assert sorted(ids(ordered)) == sorted(branch.id for branch in branches)
    position = {branch.id: number for number, branch in enumerate(ordered)}
    for branch in branches:
        assert all(position[branch.id] < position[one.id] for one in ancestors(branch, branches))


@given(st.data(), trees())
def test_second_plan_after_the_first_deletes_nothing(
    data: st.DataObject, branches: list[Branch]
) -> None:
    selected = data.draw(selections(branches))
    first = make_plan(branches, selected, {})
    left = [branch for branch in branches if branch not in first.deleted]
    second = make_plan(left, selected, {})
    assert second.deleted == []
    assert second.kept == first.kept


@given(st.data(), trees())
def test_descendants_are_the_branches_with_a_selected_ancestor(
    data: st.DataObject, branches: list[Branch]
) -> None:
    selected = data.draw(selections(branches))
    expected = {
        branch.id for branch in branches if selected & ids([branch, *ancestors(branch, branches)])
    }
    assert with_descendants(branches, selected & ids(branches)) == expected


def test_each_kept_branch_has_a_reason() -> None:
    branches = [
        MAIN,
        tree_branch(1, 0),
        tree_branch(2, 1),
        tree_branch(3, 0, protected=True),
        tree_branch(4, 0),
        tree_branch(5, 4),
        tree_branch(6, None),
    ]
    assert reasons(branches, 0, 1, 2, 3, 4, 6) == {
        "br-0": "it is the default branch",
        "br-3": "it is protected",
        "br-4": "its child branch-5 remains",
        "br-6": "it is a root branch",
    }


def test_branch_that_only_the_deprecated_field_calls_default_is_kept() -> None:
    assert reasons([MAIN, tree_branch(1, 0, primary=True)], 1) == {
        "br-1": "it is the default branch"
    }


def test_protected_branches_are_deleted_on_request() -> None:
    branches = [MAIN, tree_branch(1, 0, protected=True), tree_branch(2, 0, default=True)]
    plan = make_plan(branches, ids(branches), {}, protected=True)
    assert ids(plan.deleted) == {"br-1"}


def test_given_reasons_are_part_of_the_plan_in_the_order_of_the_branches() -> None:
    branches = [MAIN, tree_branch(1, 0), tree_branch(2, 0)]
    plan = make_plan(branches, {"br-0"}, {"br-2": "it is too young"})
    assert [(kept.branch.id, kept.reason) for kept in plan.kept] == [
        ("br-0", "it is the default branch"),
        ("br-2", "it is too young"),
    ]


PLANNED = tree_branch(1, 0)
LATER = PLANNED.updated_at + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"logical_size": 7, "current_state": "archived"}, None),
        ({"name": "new"}, "it has since been renamed to new"),
        ({"parent_id": "br-9"}, "its parent has since become br-9"),
        ({"default": True}, "it is the default branch now"),
        ({"protected": True}, "it is protected now"),
        ({"updated_at": LATER}, "it has since changed, at 2026-01-01 01:00:01 UTC"),
        ({"last_reset_at": LATER}, "it has since changed, at 2026-01-01 01:00:00 UTC"),
    ],
)
def test_change_since_the_plan_is_a_reason_to_keep_a_branch(
    changes: dict[str, Any], reason: str | None
) -> None:
    assert change_since(PLANNED, replace(PLANNED, **changes)) == reason
