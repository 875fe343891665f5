from hypothesis import given

from neonctl_async.cli.trees import as_tree
from neonctl_async.types import Branch
from tests.provisioning.trees import tree_branch, trees


def drawn(*parents: int | None) -> list[str]:
    """Return the lines of the branches 0, 1, 2 …, which have these parents."""
    branches = [tree_branch(number, parent) for number, parent in enumerate(parents)]
    return [lines + branch.name for branch, lines in as_tree(branches)]


def test_branch_is_drawn_below_its_parent() -> None:
    assert drawn(None, 0, 1, 0, None) == [
        "branch-0",
        "├ branch-1",
        "│ └ branch-2",
        "└ branch-3",
        "branch-4",
    ]


def test_branch_whose_parent_is_not_listed_starts_a_tree() -> None:
    assert drawn(9, 0) == ["branch-0", "└ branch-1"]


def test_lines_of_a_deep_branch_leave_room_for_its_name() -> None:
    lines = drawn(None, *range(2000))
    assert lines[-1] == "…     └ branch-2000"


@given(trees())
def test_every_branch_is_drawn_once_and_after_its_parent(branches: list[Branch]) -> None:
    ids = [branch.id for branch, _ in as_tree(branches)]
    assert sorted(ids) == sorted(branch.id for branch in branches)
    for branch in branches:
        if branch.parent_id in ids:
            assert ids.index(branch.parent_id) < ids.index(branch.id)
