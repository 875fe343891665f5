"""The page of a branch, and the forms that create, change, delete and recover a branch."""

from typing import Any

import pytest

from control_plane.tests.client import Client
from control_plane.tests.console.visitor import Page, Visitor
from neonctl_local import ManualClock
from neonctl_local.console.pages import branch_context


@pytest.fixture
def branches(branch_path: str) -> str:
    """Return the path of the branches of a project, in the console and in the API.

    Nothing is running.
    """
    return branch_path.rpartition("/")[0]


@pytest.fixture
async def child(api: Client, clock: ManualClock, project_id: str, branch_path: str) -> str:
    """Return the path of a child of the first branch, in the console and in the API."""
    created = await api.branch(project_id, name="child", compute=True)
    clock.advance(9)
    return f"{branch_path.rpartition('/')[0]}/{created['branch']['id']}"


async def named(api: Client, branches: str, name: str) -> Any:  # Any: as Reply.json
    """Return the branch with a name."""
    found = (await api.get(branches))["branches"]
    (branch,) = [branch for branch in found if branch["name"] == name]
    return branch


async def branch_at(api: Client, path: str) -> Any:  # Any: as Reply.json
    """Return the branch with a path."""
    return (await api.get(path))["branch"]


async def create(visitor: Visitor, branches: str, **values: str | None) -> Page:
    """Fill in the form of a new branch, and post it."""
    form = await visitor.get(f"{branches}/new")
    return await visitor.post(form, f"{branches}/new", **values)


async def change(visitor: Visitor, path: str, form: str, **values: str | None) -> Page:
    """Fill in a form on the page of a branch, and post it."""
    return await visitor.post(await visitor.get(path), f"{path}/{form}", **values)


async def confirm(visitor: Visitor, path: str, **values: str | None) -> Page:
    """Open the page of a confirmation, and confirm."""
    return await visitor.post(await visitor.get(path), path, **values)


async def test_branch_whose_creation_failed_is_not_shown_as_being_created(
    api: Client, visitor: Visitor, branches: str, clock: ManualClock
) -> None:
    await api.control_plane.fail_next("create_branch")
    page = await create(visitor, branches, name="preview")
    clock.advance(10)
    page = await visitor.get(page.path)
    assert page.status == 200
    assert "Not created" in page.text
    assert "Creating" not in page.text


async def test_branch_is_created_with_a_compute(
    api: Client, visitor: Visitor, branch_path: str, branches: str, project_id: str
) -> None:
    page = await create(visitor, branches, name="preview")
    created = await named(api, branches, "preview")
    assert created["parent_id"] == branch_path.rpartition("/")[2]
    assert page.path == f"{branches}/{created['id']}"
    assert "Branch preview created. Started: Create branch, Start compute." in page.text
    assert f"/console/projects/{project_id}/operations?branch={created['id']}" in page.links
    assert "Starting" in page.text
    assert len((await api.get(f"{branches}/{created['id']}/endpoints"))["endpoints"]) == 1


async def test_branch_is_created_with_all_options_and_without_a_compute(
    api: Client, visitor: Visitor, child: str, branches: str
) -> None:
    parent = child.rpartition("/")[2]
    form = await visitor.get(f"{branches}/new?parent={parent}")
    assert form.form(f"{branches}/new").fields["parent"] == parent
    page = await visitor.post(
        form,
        f"{branches}/new",
        name="grandchild",
        parent_lsn="0/1A2B3C",
        data="schema-only",
        expires_at="2026-01-23T04:05",
        compute=None,
    )
    created = await named(api, branches, "grandchild")
    assert "parent_id" not in created
    assert created["init_source"] == "schema-only"
    assert created["expires_at"] == "2026-01-23T04:05:00Z"
    assert "No compute" in page.text
    assert "Schema only" in page.text


async def test_branch_is_created_from_a_point_in_time(
    api: Client, visitor: Visitor, branches: str
) -> None:
    await create(visitor, branches, name="old", parent_timestamp="2026-01-01T00:00:05")
    assert (await named(api, branches, "old"))["parent_timestamp"] == "2026-01-01T00:00:05Z"


async def test_refused_branch_keeps_what_was_typed(
    visitor: Visitor, child: str, branches: str
) -> None:
    values = {"name": "child", "parent": child.rpartition("/")[2], "parent_lsn": "0/1"}
    page = await create(visitor, branches, **values, compute=None)
    assert page.status == 409
    assert "a branch named 'child' already exists" in page.text
    assert "Type another value" in page.text
    form = page.form(f"{branches}/new")
    assert values.items() <= form.fields.items()
    assert "compute" in form.unchecked
    assert "<details open>" in page.html


async def test_branch_starts_at_one_point(visitor: Visitor, branches: str) -> None:
    both = {"parent_timestamp": "2026-01-01T00:00:05", "parent_lsn": "0/1"}
    page = await create(visitor, branches, **both)
    assert page.status == 400
    assert "not both" in page.text


@pytest.mark.control_plane(lock="project")
async def test_request_to_a_locked_project_is_refused_with_the_next_step(
    visitor: Visitor, branches: str, project_id: str
) -> None:
    await create(visitor, branches, name="first")
    page = await create(visitor, branches, name="second")
    assert page.status == 423
    assert "Wait until the running operations have finished" in page.text
    assert f"/console/projects/{project_id}/operations" in page.links


async def test_parent_is_typed_if_there_are_many_branches(
    api: Client, visitor: Visitor, child: str, branches: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branch_context, "MAXIMUM_OPTIONS", 1)
    form = await visitor.get(f"{branches}/new")
    assert form.form(f"{branches}/new").fields["parent"] == "main"
    assert '<option value="child">' in form.html
    page = await visitor.post(form, f"{branches}/new", parent="none")
    assert page.status == 400
    assert "the project has no branch 'none'" in page.text
    await visitor.post(page, f"{branches}/new", parent="child", name="grandchild")
    parent = child.rpartition("/")[2]
    assert (await named(api, branches, "grandchild"))["parent_id"] == parent
    form = await visitor.get(f"{branches}/new?parent={parent}")
    assert form.form(f"{branches}/new").fields["parent"] == "child"


async def test_page_shows_the_branch_and_its_relatives(
    visitor: Visitor, branch_path: str, child: str
) -> None:
    page = await visitor.get(child)
    assert f"/console{branch_path}" in page.links
    for text in ("Ready", "Active", "First User", "0.25 CU", "This branch has no children."):
        assert text in page.text
    for text in ("Create branch - OK", "Start compute ep-"):
        assert text in page.text.replace("\N{EN DASH}", "-")
    root = await visitor.get(branch_path)
    assert f"/console{child}" in root.links
    assert "This is a root branch" in root.text


async def test_names_are_escaped(api: Client, visitor: Visitor, branches: str) -> None:
    name = '<img src=x onerror="alert(1)">\u202e'
    page = await create(visitor, branches, name=name)
    assert "<img src=x" not in page.html
    assert f"Branch {name} created" in page.text
    path = f"{branches}/{(await named(api, branches, name))['id']}"
    for suffix in ("", "/delete", "/reset", "/restore", "/computes/new"):
        assert "<img src=x" not in (await visitor.get(path + suffix)).html


async def test_buttons_that_a_root_branch_refuses_have_reasons(
    visitor: Visitor, branch_path: str, child: str
) -> None:
    page = await visitor.get(branch_path)
    assert "Not available: a root branch has no parent" in page.text
    assert "Not available: the root branch of a project cannot be deleted" in page.text
    assert "Not available: this is the default branch" in page.text
    assert "The default branch cannot expire." in page.text
    assert "Not available" not in (await visitor.get(child)).text


async def test_branch_is_renamed(api: Client, visitor: Visitor, child: str) -> None:
    page = await change(visitor, child, "rename", name="renamed")
    assert "Branch renamed to renamed ." in page.text
    assert (await branch_at(api, child))["name"] == "renamed"


async def test_refused_name_stays_in_its_field(visitor: Visitor, child: str) -> None:
    page = await change(visitor, child, "rename", name="main")
    assert page.status == 409
    assert page.form(f"{child}/rename").fields["name"] == "main"
    assert (await visitor.get(f"{child}/rename")).form(f"{child}/rename").fields["name"] == "child"


async def test_address_of_a_button_leads_to_the_branch(visitor: Visitor, child: str) -> None:
    assert (await visitor.get(f"{child}/protection")).path == child


async def test_expiry_is_set_and_removed(api: Client, visitor: Visitor, child: str) -> None:
    await change(visitor, child, "expiry", expires_at="2026-01-23T04:05:06")
    assert (await branch_at(api, child))["expires_at"] == "2026-01-23T04:05:06Z"
    page = await visitor.get(child)
    assert page.form(f"{child}/expiry").fields["expires_at"] == "2026-01-23T04:05:06"
    listed = await visitor.get(child.rpartition("/")[0])
    assert "child expires 2026-01-23 04:05:06" in listed.text
    await visitor.post(page, f"{child}/expiry", expires_at="")
    assert "expires_at" not in await branch_at(api, child)


async def test_expiry_in_the_past_is_refused(visitor: Visitor, child: str) -> None:
    page = await change(visitor, child, "expiry", expires_at="2025-02-03T04:05")
    assert page.status == 400
    assert "expiry: 2025-02-03T04:05:00Z is in the past" in page.text
    assert page.form(f"{child}/expiry").fields["expires_at"] == "2025-02-03T04:05"


async def test_page_advises_only_what_makes_a_branch_deletable(
    visitor: Visitor, branch_path: str, child: str
) -> None:
    await change(visitor, branch_path, "protection")
    page = await visitor.get(f"{branch_path}/delete")
    assert "The root branch of a project cannot be deleted." in page.text
    assert "Unprotect" not in page.text
    assert "then delete it" not in page.text
    assert "Delete its children" not in page.text
    await change(visitor, child, "protection")
    await change(visitor, child, "default")
    page = await visitor.get(f"{child}/delete")
    assert "Set another branch as the default, then delete it." in page.text
    assert "Unprotect" not in page.text


async def test_protected_branch_is_deleted_after_its_protection(
    api: Client, visitor: Visitor, child: str
) -> None:
    page = await change(visitor, child, "protection")
    assert "Branch protected." in page.text
    assert (await branch_at(api, child))["protected"]
    assert "unprotect it first" in page.text
    assert "Unprotect it on" in (await visitor.get(f"{child}/delete")).text
    await change(visitor, child, "protection")
    assert not (await branch_at(api, child))["protected"]
    assert "Branch child deleted" in (await confirm(visitor, f"{child}/delete")).text


async def test_branch_becomes_the_default(
    api: Client, visitor: Visitor, branch_path: str, child: str
) -> None:
    page = await change(visitor, child, "default")
    assert "child is the default branch." in page.text
    assert (await branch_at(api, child))["default"]
    assert not (await branch_at(api, branch_path))["default"]


async def test_deletion_names_what_is_lost(visitor: Visitor, child: str) -> None:
    page = await visitor.get(f"{child}/delete")
    for text in ("1 database: neondb", "1 role: neondb_owner", "1 compute. Open connections end"):
        assert text in page.text


async def test_deleted_branch_is_recovered(api: Client, visitor: Visitor, child: str) -> None:
    page = await confirm(visitor, f"{child}/delete")
    assert "Started: Suspend compute, Delete timeline." in page.text
    assert "Recoverable until 2026-01-08" in page.text
    page = await visitor.post(page, f"{child}/recover")
    assert "Branch child recovered." in page.text
    assert "Idle" in page.text
    assert (await branch_at(api, child))["name"] == "child"


async def test_deleted_branch_is_found_in_a_list_and_recovered(
    api: Client, visitor: Visitor, clock: ManualClock, project_id: str, child: str, branches: str
) -> None:
    path = f"{branches}/deleted"
    assert f"/console{path}" in (await visitor.get(f"/projects/{project_id}")).links
    assert "There are no deleted branches" in (await visitor.get(path)).text
    await api.request("DELETE", child)
    page = await visitor.get(path)
    assert f"/console{child}" in page.links
    assert "No branch matches" in (await visitor.get(f"{path}?search=other")).text
    page = await visitor.post(page, f"{child}/recover")
    assert (page.path, "Branch child recovered." in page.text) == (child, True)
    await api.request("DELETE", child)
    clock.advance(7 * 86400 + 1)
    assert "There are no deleted branches" in (await visitor.get(path)).text


async def test_branch_is_deleted_permanently(visitor: Visitor, child: str, branches: str) -> None:
    page = await confirm(visitor, f"{child}/delete", permanently="yes")
    assert "It cannot be recovered" in page.text
    assert not [form for form in page.forms if "recover" in form.action]
    assert "There are no deleted branches" in (await visitor.get(f"{branches}/deleted")).text


async def test_branch_that_was_deleted_meanwhile_shows_this(
    api: Client, visitor: Visitor, child: str
) -> None:
    confirmation, settings = await visitor.get(f"{child}/delete"), await visitor.get(child)
    await api.request("DELETE", child)
    assert "was deleted before" in (await visitor.post(confirmation, f"{child}/delete")).text
    page = await visitor.post(settings, f"{child}/rename", name="new")
    assert page.status == 404
    assert "Recoverable until" in page.text


async def test_parent_of_a_branch_is_not_deleted(
    visitor: Visitor, branch_path: str, child: str
) -> None:
    page = await visitor.get(f"{branch_path}/delete")
    assert "root branch of a project cannot be deleted" in page.text
    assert not [form for form in page.forms if form.action.endswith("/delete")]
    await change(visitor, child, "default")
    assert f"/console{child}" in (await visitor.get(branch_path)).links


async def test_unknown_branch_is_not_found(visitor: Visitor, branches: str) -> None:
    assert (await visitor.get(f"{branches}/br-unknown")).status == 404


async def test_typed_name_is_kept_while_a_person_signs_in_again(
    visitor: Visitor, child: str
) -> None:
    page = await visitor.get(child)
    page.form(f"{child}/rename").fields["csrf"] = "of an older session"
    refused = await visitor.post(page, f"{child}/rename", name="typed")
    assert refused.status == 403
    page = await visitor.get(f"{child}/rename")
    assert page.path == child
    assert page.form(f"{child}/rename").fields["name"] == "typed"


async def test_branch_of_somebody_else_is_not_found(api: Client, child: str, branches: str) -> None:
    key = await api.new_user_key("other@example.com")
    async with Visitor(api.control_plane) as other:
        await other.sign_in_with_key(key)
        for path in (child, f"{child}/delete", f"{branches}/new", f"{child}/restore"):
            assert (await other.get(path)).status == 404
