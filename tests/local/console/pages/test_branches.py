"""The page of a branch, and the forms that create, change, delete and recover a branch."""

from typing import Any

import pytest

from neonctl_async.local import ManualClock
from tests.local.client import Client
from tests.local.console.visitor import Page, Visitor


@pytest.fixture
async def branch_id(api: Client, branch_path: str) -> str:
    """Return the id of the default branch of a project. Nothing is running."""
    return branch_path.rpartition("/")[2]


@pytest.fixture
def branches(project_id: str) -> str:
    """Return the path of the branches of the project, below the path of the console."""
    return f"/projects/{project_id}/branches"


async def named(api: Client, project_id: str, name: str) -> Any:  # Any: as Reply.json
    """Return the branch with a name."""
    found = (await api.get(f"/projects/{project_id}/branches?search={name}"))["branches"]
    (branch,) = [branch for branch in found if branch["name"] == name]
    return branch


async def add_branch(
    api: Client, clock: ManualClock, project_id: str, **spec: object
) -> str:
    """Create a branch, and wait for its operations. Return its id."""
    created = await api.branch(project_id, **spec)
    clock.advance(9)
    return str(created["branch"]["id"])


async def create(visitor: Visitor, branches: str, **values: str | None) -> Page:
    """Fill in the form of a new branch, and post it."""
    form = await visitor.get(f"{branches}/new")
    return await visitor.post(form, f"{branches}/new", **values)


async def test_branch_is_created_with_a_compute(
    api: Client, visitor: Visitor, project_id: str, branch_id: str, branches: str
) -> None:
    page = await create(visitor, branches, name="preview")
    created = await named(api, project_id, "preview")
    assert created["parent_id"] == branch_id
    assert page.path == f"{branches}/{created['id']}"
    assert "Branch preview created. Started: Create branch, Start compute." in page.text
    assert f"/console/projects/{project_id}/operations?branch={created['id']}" in page.links
    assert "Starting" in page.text
    assert len((await api.get(f"{branches}/{created['id']}/endpoints"))["endpoints"]) == 1


async def test_branch_is_created_without_a_compute_from_another_branch(
    api: Client, visitor: Visitor, clock: ManualClock, project_id: str, branches: str
) -> None:
    clock.advance(9)
    parent = await add_branch(api, clock, project_id, name="staging")
    form = await visitor.get(f"{branches}/new?parent={parent}")
    assert form.form(f"{branches}/new").fields["parent"] == parent
    page = await visitor.post(
        form,
        f"{branches}/new",
        name="child",
        parent_lsn="0/1A2B3C",
        data="schema-only",
        protected="yes",
        expires_at="2026-02-03T04:05",
        compute=None,
    )
    child = await named(api, project_id, "child")
    assert child["parent_id"] == parent
    assert child["parent_lsn"] == "0/1A2B3C"
    assert child["init_source"] == "schema-only"
    assert child["expires_at"] == "2026-02-03T04:05:00Z"
    assert child["protected"]
    assert "No compute" in page.text
