"""Keyset pagination, on the list of branches."""

import base64
import json

import pytest

from control_plane.tests.client import Client
from neonctl_local import ManualClock


@pytest.mark.fact("records-2")
@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("sort_by", ["name", "created_at", "updated_at"])
async def test_pages_follow_the_requested_sort_order(
    api: Client, clock: ManualClock, project_id: str, sort_by: str, order: str
) -> None:
    for name in ("b", "a", "c", "tie-1", "tie-2"):
        await api.branch(project_id, name=name)
        if not name.startswith("tie"):
            clock.advance(1)
    query = f"?sort_by={sort_by}&sort_order={order}"
    all_names = await api.branch_names(project_id, query)
    listed_names: list[str] = []
    page = await api.get(f"/projects/{project_id}/branches{query}&limit=2")
    for _ in range(9):
        listed_names += [branch["name"] for branch in page["branches"]]
        pagination = page["pagination"]
        assert (pagination["sort_by"], pagination["sort_order"]) == (sort_by, order.upper())
        cursor = page["pagination"].get("next")
        if cursor is None:
            break
        page = await api.get(f"/projects/{project_id}/branches?limit=2&cursor={cursor}")
    assert listed_names == all_names
    assert len(listed_names) == len(set(listed_names)) == 6
    # "main" and "b" have the same times, and so have the two ties.
    moments = {"main": 0, "b": 0, "a": 1, "c": 2, "tie-1": 3, "tie-2": 3}
    ranks = [name if sort_by == "name" else str(moments[name]) for name in listed_names]
    assert ranks == sorted(ranks, reverse=order == "desc")


@pytest.mark.parametrize(
    "position",
    [
        ["created_at", "asc", 2**63, "x"],
        ["created_at", "asc", -(2**63) - 1, "x"],
        ["created_at", "asc", "2026", "x"],
        ["name", "asc", 1, "x"],
    ],
)
async def test_cursor_with_a_value_of_the_wrong_type_is_400(
    api: Client, project_id: str, position: list[object]
) -> None:
    cursor = base64.urlsafe_b64encode(json.dumps(position).encode()).decode()
    await api.expect_error(400, "cursor", "GET", f"/projects/{project_id}/branches?cursor={cursor}")


@pytest.mark.parametrize("letter", ["!", "/"])
async def test_cursor_with_another_letter_is_400(api: Client, project_id: str, letter: str) -> None:
    position = ["created_at", "asc", 0, "x"]
    cursor = base64.urlsafe_b64encode(json.dumps(position).encode()).decode()
    path = f"/projects/{project_id}/branches?cursor="
    await api.get(path + cursor)
    await api.expect_error(400, "cursor", "GET", f"{path}{letter}{cursor}")
