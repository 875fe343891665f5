"""Parents come before children, and each project gets the next tenant in order."""

import itertools

import pytest

from neonctl_async.provisioning.fleet import FleetError
from neonctl_async.provisioning.fleet.preparing import interleaved, parents_first
from tests.provisioning.fleet.records import tenant


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_parents_come_first_in_any_order(order: tuple[int, ...]) -> None:
    parents = [None, "b-0", "b-1", "main"]
    tenants = [tenant(f"b-{number}", parent=parents[number]) for number in order]
    ordered = [one.branch for one in parents_first(tenants)]
    assert sorted(ordered) == ["b-0", "b-1", "b-2", "b-3"]
    assert ordered.index("b-0") < ordered.index("b-1") < ordered.index("b-2")


def test_long_chain_of_parents_is_ordered() -> None:
    tenants = [tenant(f"b-{number}", parent=f"b-{number - 1}") for number in range(5000, 0, -1)]
    assert parents_first(tenants) == tenants[::-1]


@pytest.mark.parametrize(
    "parents", [{"a": "a"}, {"a": "b", "b": "a"}, {"c": "a", "a": "b", "b": "a"}]
)
def test_circle_of_parents_is_rejected(parents: dict[str, str]) -> None:
    with pytest.raises(FleetError, match=r"^the parents of acme/\w form a circle: "):
        parents_first([tenant(branch, parent=parent) for branch, parent in parents.items()])


def test_batches_of_all_groups_precede_the_second_ones() -> None:
    assert "".join(interleaved(["abcdefghi", "", "jk", "lmnop"])) == "abcdjklmnoefghpi"
    assert not "".join(interleaved([""]))
