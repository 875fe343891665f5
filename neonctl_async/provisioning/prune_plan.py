"""The branches to delete, in order, and the branches to keep, with reasons. Pure: no I/O."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from neonctl_async.models.branches import Branch, KeptBranch


class PrunePlan(NamedTuple):
    """The branches to delete, children before their parents, and the branches to keep."""

    deleted: list[Branch]
    kept: list[KeptBranch]


def make_plan(
    branches: Sequence[Branch],
    selected: Collection[str],
    reasons: Mapping[str, str],
    *,
    protected: bool = False,
) -> PrunePlan:
    """Plan the deletion of the branches whose ids are ``selected``.

    Default, root and protected branches are kept, and so are all ancestors of a kept branch. With
    ``protected``, protected branches are deleted. ``reasons`` contains further branches to list as
    kept, by id, with the reasons.
    """
    deleted: dict[str, Branch] = {}
    kept: dict[str, str] = dict(reasons)
    kept_child: dict[str, Branch] = {}
    for branch in children_first(branches):
        if branch.id in selected:
            reason = obstacle(branch, protected=protected)
            if reason is None and branch.id in kept_child:
                reason = child_reason(kept_child[branch.id])
            if reason is None:
                deleted[branch.id] = branch
                continue
            kept[branch.id] = reason
        if branch.parent_id is not None:
            kept_child.setdefault(branch.parent_id, branch)
    listed = (branch for branch in branches if branch.id in kept)
    return PrunePlan(
        list(deleted.values()), [KeptBranch(branch=one, reason=kept[one.id]) for one in listed]
    )


def obstacle(branch: Branch, *, protected: bool = False) -> str | None:
    """Return the reason why a branch must not be deleted, or None."""
    if branch.default or branch.primary:
        return "it is the default branch"
    if branch.parent_id is None:
        return "it is a root branch"
    if branch.protected and not protected:
        return "it is protected"
    return None


def child_reason(child: Branch) -> str:
    """Return the reason to keep the parent of a branch that is not deleted."""
    return f"its child {child.name} remains"


def change_since(planned: Branch, current: Branch) -> str | None:
    """Return how a branch has changed since its deletion was planned, or None."""
    if current.name != planned.name:
        return f"it has since been renamed to {current.name}"
    if current.parent_id != planned.parent_id:
        return f"its parent has since become {current.parent_id}"
    if reason := obstacle(current):
        return f"{reason} now"
    if current.updated_at != planned.updated_at or current.last_reset_at != planned.last_reset_at:
        return f"it has since changed, at {current.updated_at:%Y-%m-%d %H:%M:%S} UTC"
    return None


def children_first(branches: Sequence[Branch]) -> list[Branch]:
    """Return all branches, children before their parents."""
    ids = {branch.id for branch in branches}
    children = _children(branches)
    ordered = [branch for branch in branches if branch.parent_id not in ids]
    for branch in ordered:  # grows while it is read
        ordered += children.get(branch.id, ())
    return ordered[::-1]


def with_descendants(branches: Sequence[Branch], selected: Iterable[str]) -> set[str]:
    """Return the ids of the selected branches and of all their descendants."""
    children = _children(branches)
    found = list(selected)
    for id in found:  # grows while it is read
        found += (child.id for child in children.get(id, ()))
    return set(found)


def _children(branches: Iterable[Branch]) -> dict[str | None, list[Branch]]:
    children: dict[str | None, list[Branch]] = {}
    for branch in branches:
        children.setdefault(branch.parent_id, []).append(branch)
    return children
