"""Random trees of branches for tests with hypothesis."""

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from neonctl_async.types import Branch
from tests.support.records import EPOCH, PROJECT


def tree_branch(number: int, parent: int | None, **more: Any) -> Branch:
    at = EPOCH + timedelta(hours=number)
    return Branch(
        id=f"br-{number}",
        project_id=PROJECT,
        name=f"branch-{number}",
        current_state="ready",
        parent_id=None if parent is None else f"br-{parent}",
        created_at=at,
        updated_at=at,
        **more,
    )


@st.composite
def trees(draw: st.DrawFn, max_size: int = 12) -> list[Branch]:
    """Branches in any order; parents may be missing from the list, as if deleted."""
    size = draw(st.integers(1, max_size))
    default = draw(st.integers(0, size - 1))
    branches = [
        tree_branch(
            number,
            draw(st.none() | st.integers(0, number - 1)) if number else None,
            default=number == default,
            protected=draw(st.integers(0, 5)) == 0,
        )
        for number in range(size)
    ]
    missing = draw(st.integers(0, size * 4))
    return draw(st.permutations([b for b in branches if b.id != f"br-{missing}"]))
