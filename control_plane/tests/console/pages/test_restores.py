"""The forms that replace the content of a branch: reset from the parent, and restore."""

from typing import Any

import pytest

from control_plane.tests.client import Client
from control_plane.tests.console.visitor import Page, Visitor
from neonctl_local import ManualClock


@pytest.fixture
async def child(api: Client, clock: ManualClock, project_id: str, branch_path: str) -> str:
    """Return the path of a child of the first branch, in the console and in the API."""
    created = await api.branch(project_id, name="child", compute=True)
    clock.advance(9)
    return f"{branch_path.rpartition('/')[0]}/{created['branch']['id']}"


async def add_database(api: Client, clock: ManualClock, path: str, name: str) -> None:
    """Create a database, and wait for its operations."""
    await api.add_database(path, name)
    clock.advance(9)


async def database_names(api: Client, path: str) -> list[str]:
    return [one["name"] for one in (await api.get(f"{path}/databases"))["databases"]]


async def branch_at(api: Client, path: str) -> Any:  # Any: as Reply.json
    """Return the branch with a path."""
    return (await api.get(path))["branch"]


async def send(visitor: Visitor, path: str, **values: str | None) -> Page:
    """Open a form, fill it in, and post it."""
    return await visitor.post(await visitor.get(path), path, **values)


async def test_branch_is_reset_from_its_parent(
    api: Client, visitor: Visitor, clock: ManualClock, branch_path: str, child: str
) -> None:
    await add_database(api, clock, child, "lost")
    await add_database(api, clock, branch_path, "kept")
    page = await send(visitor, f"{child}/reset")
    assert page.path == child
    assert "Branch child reset from its parent. Started: Suspend compute" in page.text
    assert await database_names(api, child) == ["neondb", "kept"]
    assert "Last restored" in page.text


async def test_branch_with_children_keeps_its_state_under_a_name(
    api: Client, visitor: Visitor, clock: ManualClock, project_id: str, child: str
) -> None:
    grandchild = await api.branch(project_id, name="g", parent_id=child.rpartition("/")[2])
    clock.advance(9)
    page = await visitor.get(f"{child}/reset")
    kept = page.form(f"{child}/reset").fields["preserve_under_name"]
    assert kept.startswith("child_old_20260101_0000")
    assert "Its 1 child is attached to the branch" in page.text
    page = await visitor.post(page, f"{child}/reset")
    assert f"Its previous state is kept as {kept} ." in page.text
    path = f"/projects/{project_id}/branches/{grandchild['branch']['id']}"
    parent_id = (await branch_at(api, path))["parent_id"]
    parent = await branch_at(api, f"/projects/{project_id}/branches/{parent_id}")
    assert parent["name"] == kept


async def test_refused_reset_keeps_what_was_typed(visitor: Visitor, child: str) -> None:
    page = await send(visitor, f"{child}/reset", preserve_under_name="main")
    assert page.status == 409
    assert page.form(f"{child}/reset").fields["preserve_under_name"] == "main"


async def test_root_branch_is_not_reset(visitor: Visitor, branch_path: str, child: str) -> None:
    page = await visitor.get(f"{branch_path}/reset")
    assert "A root branch has no parent" in page.text
    assert f"/console{branch_path}/restore" in page.links
    form = (await visitor.get(f"{child}/reset")).form(f"{child}/reset")
    form.action = f"/console{branch_path}/reset"
    page.forms.append(form)
    page = await visitor.post(page, f"{branch_path}/reset")
    assert page.status == 422
    assert "restore it from another branch" in page.text


async def test_branch_is_restored_from_itself(
    api: Client, visitor: Visitor, branch_path: str
) -> None:
    assert "(optional)" not in (await visitor.get(f"{branch_path}/restore")).text
    page = await send(visitor, f"{branch_path}/restore", source_timestamp="2026-01-01T00:00:09")
    assert "Branch main restored. Its previous state is kept as main_old_" in page.text
    assert "This is a root branch State at 2026-01-01 00:00:09" in page.text
    assert "of the parent" not in page.text
    branch = await branch_at(api, branch_path)
    assert branch["parent_timestamp"] == "2026-01-01T00:00:09Z"
    assert branch["restored_from"] == branch["id"]


async def test_branch_is_restored_from_another_branch(
    api: Client, visitor: Visitor, branch_path: str, child: str
) -> None:
    values = {"source": branch_path.rpartition("/")[2], "source_lsn": "0/1A2B"}
    page = await send(visitor, f"{child}/restore", **values, preserve_under_name="")
    assert "Branch child restored. Started:" in page.text
    branch = await branch_at(api, child)
    assert branch["parent_lsn"] == "0/1A2B"
    assert branch["restored_from"] == values["source"]
    assert "Restored from main" in page.text


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "requires a point in time or an LSN"),
        ({"source_timestamp": "2026-01-01T00:00:09", "source_lsn": "0/1"}, "not both"),
        ({"source_lsn": "1"}, "an LSN like 0/1A2B3C"),
        (
            {"source_lsn": "0/1", "preserve_under_name": ""},
            "name of the previous state: field required",
        ),
    ],
    ids=["no time", "time and LSN", "no LSN", "no name"],
)
async def test_restore_that_is_not_possible_is_refused(
    visitor: Visitor, branch_path: str, values: dict[str, str], words: str
) -> None:
    page = await send(visitor, f"{branch_path}/restore", **values)
    assert page.status == 400
    assert words in page.text
    assert values.items() <= page.form(f"{branch_path}/restore").fields.items()


async def test_child_branch_is_not_offered_to_itself(
    visitor: Visitor, branch_path: str, child: str
) -> None:
    page = await visitor.get(f"{child}/restore")
    assert page.form(f"{child}/restore").fields["source"] == branch_path.rpartition("/")[2]
    assert "Only root branches can be restored to their own past" in page.text
    assert f'<option value="{child.rpartition("/")[2]}"' not in page.html
