"""The order of branches in the tree."""

from neonctl_local.console.branch_tree import BranchName, arrange


def branch(id: str, parent_id: str | None = None, *, default: bool = False) -> BranchName:
    return BranchName(id=id, parent_id=parent_id, name=id, is_default=default)


def shown(*branches: BranchName) -> list[tuple[str, int]]:
    return [(place.branch.id, place.level) for place in arrange(branches)]


def test_children_follow_their_parent_in_the_given_order() -> None:
    order = shown(branch("d", "b"), branch("c", "a"), branch("b", "a"), branch("a", default=True))
    assert order == [("a", 0), ("c", 1), ("b", 1), ("d", 2)]


def test_tree_of_the_default_branch_comes_first() -> None:
    order = shown(
        branch("z"), branch("y", "x", default=True), branch("x"), branch("w"), branch("v", "w")
    )
    assert order == [("x", 0), ("y", 1), ("z", 0), ("w", 0), ("v", 1)]


def test_branch_of_a_deleted_parent_is_a_root() -> None:
    assert shown(branch("b", "deleted"), branch("a", default=True)) == [("a", 0), ("b", 0)]


def test_tree_can_be_as_deep_as_it_has_branches() -> None:
    count = 5000
    chain = [branch(str(number), str(number - 1)) for number in range(count, 0, -1)]
    assert shown(*chain, branch("0", default=True))[-1] == (str(count), count)


def test_project_without_branches_has_an_empty_tree() -> None:
    assert shown() == []
