"""Branches: created, read, listed, updated, restored, made the default, deleted."""

import base64
import json
from typing import Any

import pytest

from neonctl_async.local import ManualClock
from tests.local.client import Client


async def names(api: Client, project_id: str, query: str = "") -> list[str]:
    """The names of the branches listed."""
    page = await api.get(f"/projects/{project_id}/branches{query}")
    return [branch["name"] for branch in page["branches"]]


# Any: as Client.get.
async def main_branch(api: Client, project_id: str) -> Any:
    """The first branch of a project."""
    (branch,) = (await api.get(f"/projects/{project_id}/branches?search=main"))["branches"]
    return branch


async def test_a_branch_without_a_compute_is_one_operation(api: Client, project_id: str) -> None:
    created = await api.branch(project_id)
    assert [op["action"] for op in created["operations"]] == ["create_branch"]
    assert (created["endpoints"], "connection_uris" in created) == ([], False)
    assert created["branch"]["name"] == created["branch"]["id"]
    assert created["branch"]["parent_id"] == (await main_branch(api, project_id))["id"]


async def test_a_branch_with_a_compute_can_be_connected_to(api: Client, project_id: str) -> None:
    created = await api.branch(project_id, name="preview", compute=True)
    (endpoint,), (uri,) = created["endpoints"], created["connection_uris"]
    assert [role["name"] for role in created["roles"]] == ["neondb_owner"]
    assert [database["name"] for database in created["databases"]] == ["neondb"]
    assert "password" not in created["roles"][0]
    password = uri["connection_parameters"]["password"]
    assert f":{password}@{endpoint['host']}/" in uri["connection_uri"]


async def test_a_branch_is_initializing_until_it_is_created(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    created = (await api.branch(project_id))["branch"]
    assert (created["current_state"], created["pending_state"]) == ("init", "ready")
    clock.advance(1)
    branch = (await api.get(f"/projects/{project_id}/branches/{created['id']}"))["branch"]
    assert (branch["current_state"], "pending_state" in branch) == ("ready", False)
    assert branch["state_changed_at"] == "2026-01-01T00:00:01Z"


async def test_a_branch_whose_creation_fails_stays_initializing(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await api.control_plane.fail_next("create_branch")
    created = (await api.branch(project_id))["branch"]
    clock.advance(9)
    branch = (await api.get(f"/projects/{project_id}/branches/{created['id']}"))["branch"]
    assert branch["current_state"] == "init"


async def test_a_branch_has_a_parent_of_its_own_project(api: Client, project_id: str) -> None:
    parent = (await api.branch(project_id, name="parent"))["branch"]["id"]
    child = await api.branch(project_id, name="child", parent_id=parent)
    assert child["branch"]["parent_id"] == parent
    other = (await api.project())["branch"]["id"]
    body = {"branch": {"parent_id": other}}
    reply = await api.send("POST", f"/projects/{project_id}/branches", body)
    assert (reply.status, other in reply.message) == (404, True)


async def test_a_name_is_taken_once_in_a_project(api: Client, project_id: str) -> None:
    created = (await api.branch(project_id, name="preview"))["branch"]["id"]
    body = {"branch": {"name": "preview"}}
    path = f"/projects/{project_id}/branches"
    reply = await api.send("POST", path, body)
    assert (reply.status, "preview" in reply.message) == (409, True)
    other = (await api.branch(project_id, name="other"))["branch"]["id"]
    assert (await api.send("PATCH", f"{path}/{other}", body)).status == 409
    assert (await api.send("PATCH", f"{path}/{created}", body)).status == 200
    await api.done("DELETE", f"{path}/{created}")
    assert (await api.send("POST", path, body)).status == 201


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"branch": {"name": ""}}, "branch.name"),
        ({"branch": {"expires_at": "tomorrow"}}, "branch.expires_at"),
        ({"branch": {"parent_lsn": "1A2B3C"}}, "parent_lsn (expected an LSN"),
        ({"branch": {"expires_at": "2025-01-01T00:00:00Z"}}, "expires_at"),
        ({"endpoints": [{"provisioner": "k8s-pod"}]}, "endpoints[0].type"),
        ({"endpoints": [{"type": "write_only"}]}, "endpoints[0].type"),
        ({"endpoints": [{"type": "read_write", "suspend_timeout_seconds": 604801}]}, "suspend"),
        ({"endpoints": [{"type": "read_only"}] * 101}, "endpoints"),
        ({"endpoints": [{"type": "read_write", "provisioner": ""}]}, "provisioner"),
        (["branch"], "body"),
        ({"branch": {"parent_timestamp": "0001-01-01T00:00:00+14:00"}}, "parent_timestamp"),
        ({"branch": {"parent_timestamp": "9999-12-31T23:59:59-14:00"}}, "parent_timestamp"),
        ({"branch": {"expires_at": "0001-01-01T00:00:00+14:00"}}, "expires_at"),
        ({"branch": {"expires_at": "9999-12-31T23:59:59-14:00"}}, "expires_at"),
    ],
)
async def test_a_branch_that_does_not_fit_names_the_field(
    api: Client, project_id: str, body: object, field: str
) -> None:
    reply = await api.send("POST", f"/projects/{project_id}/branches", body)
    assert reply.status == 400
    assert field in reply.message


async def test_a_branch_keeps_its_annotation(api: Client, project_id: str) -> None:
    body = {"branch": {"name": "preview"}, "annotation_value": {"pr": "17"}}
    created = await api.done("POST", f"/projects/{project_id}/branches", body)
    branch_id = created["branch"]["id"]
    read = await api.get(f"/projects/{project_id}/branches/{branch_id}")
    assert read["annotation"]["value"] == {"pr": "17"}
    listed = await api.get(f"/projects/{project_id}/branches")
    assert set(listed["annotations"]) == {branch_id}


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("sort_by", ["name", "created_at", "updated_at"])
async def test_branches_are_listed_in_the_order_asked_and_in_pages(
    api: Client, clock: ManualClock, project_id: str, sort_by: str, order: str
) -> None:
    for name in ("b", "a", "c", "tie-1", "tie-2"):
        await api.branch(project_id, name=name)
        if not name.startswith("tie"):
            clock.advance(1)
    query = f"?sort_by={sort_by}&sort_order={order}"
    everything = await names(api, project_id, query)
    seen: list[str] = []
    page = await api.get(f"/projects/{project_id}/branches{query}&limit=2")
    for _ in range(9):
        seen += [branch["name"] for branch in page["branches"]]
        assert (page["pagination"]["sort_by"], page["pagination"]["sort_order"]) == (sort_by, order)
        following = page["pagination"].get("next")
        if following is None:
            break
        page = await api.get(f"/projects/{project_id}/branches?limit=2&cursor={following}")
    assert seen == everything
    assert len(seen) == len(set(seen)) == 6
    # "main" and "b" are of the same moment, and so are the two that are named for it.
    moments = {"main": 0, "b": 0, "a": 1, "c": 2, "tie-1": 3, "tie-2": 3}
    ranks = [name if sort_by == "name" else str(moments[name]) for name in seen]
    assert ranks == sorted(ranks, reverse=order == "desc")


async def test_the_branches_changed_last_come_first_unless_told(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    for name in ("first", "second"):
        clock.advance(1)
        created = await api.branch(project_id, name=name)
    clock.advance(1)
    main = (await main_branch(api, project_id))["id"]
    await api.done("PATCH", f"/projects/{project_id}/branches/{main}", {"branch": {}})
    assert await names(api, project_id) == ["main", "second", "first"]
    assert created["branch"]["name"] == "second"


async def test_branches_are_searched_and_counted(api: Client, project_id: str) -> None:
    wanted = (await api.branch(project_id, name="preview/pr-17"))["branch"]["id"]
    await api.branch(project_id, name="other")
    assert await names(api, project_id, "?search=pr-17") == ["preview/pr-17"]
    assert await names(api, project_id, f"?search={wanted}") == ["preview/pr-17"]
    count = f"/projects/{project_id}/branches/count"
    assert await api.get(count) == {"count": 3}
    assert await api.get(f"{count}?search=pr") == {"count": 1}


@pytest.mark.parametrize(
    "query",
    [
        *("limit=0", "limit=10001", "limit=1_0", "limit=%EF%BC%91", "limit=%2B5"),
        *("sort_by=size", "sort_order=up", "cursor=x", "cursor=e30="),
    ],
)
async def test_a_query_that_does_not_fit_names_the_parameter(
    api: Client, project_id: str, query: str
) -> None:
    reply = await api.send("GET", f"/projects/{project_id}/branches?{query}")
    assert (reply.status, query.partition("=")[0] in reply.message) == (400, True)


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
async def test_a_restore_is_to_a_time_that_can_be_told(
    api: Client, project_id: str, moment: str
) -> None:
    branch_id = (await api.branch(project_id))["branch"]["id"]
    path = f"/projects/{project_id}/branches/{branch_id}/restore"
    body = {"source_branch_id": branch_id, "source_timestamp": moment, "preserve_under_name": "k"}
    reply = await api.send("POST", path, body)
    assert (reply.status, "source_timestamp" in reply.message) == (400, True)


@pytest.mark.parametrize(
    "position",
    [
        ["created_at", "asc", 2**63, "x"],
        ["created_at", "asc", -(2**63) - 1, "x"],
        ["created_at", "asc", "2026", "x"],
        ["name", "asc", 1, "x"],
    ],
)
async def test_a_cursor_holds_what_its_list_is_sorted_by(
    api: Client, project_id: str, position: list[object]
) -> None:
    cursor = base64.urlsafe_b64encode(json.dumps(position).encode()).decode()
    reply = await api.send("GET", f"/projects/{project_id}/branches?cursor={cursor}")
    assert (reply.status, "cursor" in reply.message) == (400, True)


async def test_a_branch_is_updated_without_operations(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    branch_id = (await api.branch(project_id))["branch"]["id"]
    clock.advance(5)
    changes = {"name": "new", "protected": True, "expires_at": "2026-02-01T00:00:00Z"}
    path = f"/projects/{project_id}/branches/{branch_id}"
    changed = await api.done("PATCH", path, {"branch": changes})
    assert changed["operations"] == []
    assert changed["branch"].items() >= changes.items()
    assert changed["branch"]["updated_at"] == "2026-01-01T00:00:05Z"
    changed = await api.done("PATCH", path, {"branch": {"expires_at": None}})
    assert "expires_at" not in changed["branch"]


async def test_deleting_a_branch_suspends_its_computes_first(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    created = await api.branch(project_id, compute=True)
    clock.advance(5)
    path = f"/projects/{project_id}/branches/{created['branch']['id']}"
    deleted = await api.done("DELETE", path)
    assert [op["action"] for op in deleted["operations"]] == ["suspend_compute", "delete_timeline"]
    assert (await api.send("GET", path)).status == 404
    endpoint = created["endpoints"][0]["id"]
    assert (await api.send("GET", f"/projects/{project_id}/endpoints/{endpoint}")).status == 404


async def test_deleting_what_already_was_is_204(api: Client, project_id: str) -> None:
    branch_id = (await api.branch(project_id))["branch"]["id"]
    path = f"/projects/{project_id}/branches/{branch_id}"
    await api.done("DELETE", path)
    again = await api.send("DELETE", path)
    assert (again.status, again.content) == (204, b"")
    never = await api.send("DELETE", f"/projects/{project_id}/branches/br-never-was-1")
    assert never.status == 404


async def test_what_a_project_needs_is_not_deleted(api: Client, project_id: str) -> None:
    root = (await main_branch(api, project_id))["id"]
    parent = (await api.branch(project_id))["branch"]["id"]
    child = (await api.branch(project_id, parent_id=parent))["branch"]["id"]
    protected = (await api.branch(project_id, protected=True))["branch"]["id"]
    path = f"/projects/{project_id}/branches"
    await api.done("POST", f"{path}/{child}/set_as_default")
    reasons = {root: "root", child: "default", parent: "children", protected: "protected"}
    for branch_id, reason in reasons.items():
        reply = await api.send("DELETE", f"{path}/{branch_id}")
        assert (reply.status, reason in reply.message) == (422, True)


async def test_one_branch_is_the_default(api: Client, project_id: str) -> None:
    branch_id = (await api.branch(project_id, name="new"))["branch"]["id"]
    path = f"/projects/{project_id}/branches/{branch_id}"
    for action in ("set_as_default", "set_as_primary"):
        changed = await api.done("POST", f"{path}/{action}")
        assert (changed["branch"]["default"], changed["operations"]) == (True, [])
    branches = (await api.get(f"/projects/{project_id}/branches"))["branches"]
    assert {branch["name"]: branch["default"] for branch in branches} == {
        "main": False,
        "new": True,
    }
    created = await api.branch(project_id)
    assert created["branch"]["parent_id"] == branch_id
    body = {"branch": {"expires_at": "2026-02-01T00:00:00Z"}}
    assert (await api.send("PATCH", path, body)).status == 422


async def test_a_branch_is_restored_to_another(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    created = await api.branch(project_id, name="preview", compute=True)
    source = (await main_branch(api, project_id))["id"]
    branch_id = created["branch"]["id"]
    path = f"/projects/{project_id}/branches/{branch_id}"
    await api.done("POST", f"{path}/roles", {"role": {"name": "gone"}})
    clock.advance(9)
    restored = await api.done("POST", f"{path}/restore", {"source_branch_id": source})
    assert [op["action"] for op in restored["operations"]] == [
        "suspend_compute",
        "create_branch",
        "start_compute",
    ]
    assert restored["branch"]["restored_from"] == restored["branch"]["parent_id"] == source
    assert restored["branch"]["last_reset_at"] == "2026-01-01T00:00:09Z"
    roles = (await api.get(f"{path}/roles"))["roles"]
    assert [role["name"] for role in roles] == ["neondb_owner"]
    clock.advance(9)
    (endpoint,) = (await api.get(f"{path}/endpoints"))["endpoints"]
    assert endpoint["current_state"] == "active"


async def test_a_restore_can_keep_what_was(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    branch_id = (await api.branch(project_id, name="preview"))["branch"]["id"]
    child = (await api.branch(project_id, parent_id=branch_id))["branch"]["id"]
    clock.advance(9)
    path = f"/projects/{project_id}/branches"
    body = {"source_branch_id": branch_id, "source_timestamp": "2026-01-01T00:00:05Z"}
    refused = await api.send("POST", f"{path}/{branch_id}/restore", body)
    assert (refused.status, "preserve_under_name" in refused.message) == (400, True)
    body["preserve_under_name"] = "before"
    restored = (await api.done("POST", f"{path}/{branch_id}/restore", body))["branch"]
    (kept,) = (await api.get(f"{path}?search=before"))["branches"]
    assert (kept["restored_as"], restored["parent_id"]) == (branch_id, kept["id"])
    assert restored["parent_timestamp"] == "2026-01-01T00:00:05Z"
    assert (await api.get(f"{path}/{child}"))["branch"]["parent_id"] == kept["id"]


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({}, 400, "source_branch_id"),
        ({"source_branch_id": "br-none-1"}, 404, "br-none-1"),
        ({"source_branch_id": "self"}, 400, "preserve_under_name"),
        ({"source_branch_id": "self", "source_lsn": "now"}, 400, "source_lsn"),
        ({"source_branch_id": "self", "preserve_under_name": "x"}, 400, "source_timestamp"),
        ({"source_branch_id": "root", "preserve_under_name": "main"}, 409, "main"),
    ],
)
async def test_a_restore_that_does_not_fit_is_refused(
    api: Client, project_id: str, body: dict[str, str], status: int, word: str
) -> None:
    main = (await main_branch(api, project_id))["id"]
    branch_id = (await api.branch(project_id))["branch"]["id"]
    named = {"self": branch_id, "root": main}
    sent = {name: named.get(value, value) for name, value in body.items()}
    path = f"/projects/{project_id}/branches/{branch_id}/restore"
    reply = await api.send("POST", path, sent)
    assert (reply.status, word in reply.message) == (status, True), reply.message
