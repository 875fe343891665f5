"""Updating, deleting and recovering projects."""

import pytest

from control_plane.tests.client import Client, Reply, actions_of
from control_plane.tests.keys import member_key
from neonctl_local import ManualClock


@pytest.mark.fact("projects-6")
async def test_renaming_a_project_starts_no_operations(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(9)
    body = {"project": {"name": "new name"}}
    changed = await api.request("PATCH", f"/projects/{project_id}", body)
    assert (changed["project"]["name"], changed["operations"]) == ("new name", [])
    assert changed["project"]["updated_at"] == "2026-01-01T00:00:09Z"
    assert (await api.get(f"/projects/{project_id}"))["project"] == changed["project"]


@pytest.mark.fact("restore-14")
async def test_new_history_retention_starts_apply_storage_config(
    api: Client, project_id: str
) -> None:
    body = {"project": {"history_retention_seconds": 3600}}
    changed = await api.request("PATCH", f"/projects/{project_id}", body)
    assert actions_of(changed) == ["apply_storage_config"]
    assert changed["project"]["history_retention_seconds"] == 3600
    again = await api.request("PATCH", f"/projects/{project_id}", body)
    assert again["operations"] == []


async def test_new_settings_are_applied_to_running_computes(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(9)
    await api.branch(project_id, compute=True)
    body = {"project": {"settings": {"audit_log_level": "base"}}}
    changed = await api.request("PATCH", f"/projects/{project_id}", body)
    assert actions_of(changed) == ["apply_config", "apply_config"]
    hipaa = {"project": {"settings": {"hipaa": True}}}
    changed = await api.request("PATCH", f"/projects/{project_id}", hipaa)
    settings = {"audit_log_level": "base", "hipaa": True}
    assert changed["project"]["settings"].items() >= settings.items()


@pytest.mark.fact("projects-13", "projects-14")
async def test_enabling_logical_replication_suspends_computes_and_is_final(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(9)

    async def change(*, enabled: bool) -> Reply:
        body = {"project": {"settings": {"enable_logical_replication": enabled}}}
        return await api.send("PATCH", f"/projects/{project_id}", body)

    assert actions_of((await change(enabled=False)).json) == ["apply_config"]
    assert actions_of((await change(enabled=True)).json) == ["suspend_compute"]
    clock.advance(9)
    assert actions_of((await change(enabled=True)).json) == []
    refused = await change(enabled=False)
    assert (refused.status, "cannot be disabled" in refused.message) == (422, True)


async def test_only_operations_of_a_deleted_project_can_be_read(
    api: Client, project_id: str
) -> None:
    deleted = await api.request("DELETE", f"/projects/{project_id}")
    assert (deleted["project"]["id"], actions_of(deleted)) == (project_id, ["delete_tenant"])
    assert (await api.send("GET", f"/projects/{project_id}")).status == 404
    assert (await api.send("GET", f"/projects/{project_id}/branches")).status == 404
    assert (await api.send("DELETE", f"/projects/{project_id}")).status == 404
    assert await api.project_names() == []
    assert (await api.actions(project_id))[-1] == "delete_tenant"


@pytest.mark.fact("projects-21")
async def test_member_cannot_delete_a_project_of_the_organization(
    api: Client, project_id: str
) -> None:
    _, user_key = await member_key(api)
    assert (await api.send("DELETE", f"/projects/{project_id}", key=user_key)).status == 403
    own = await api.request("POST", "/projects", {"project": {}}, key=user_key)
    path = f"/projects/{own['project']['id']}"
    assert (await api.send("DELETE", path, key=user_key)).status == 200


async def test_recovering_a_project_attaches_it(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await api.request("DELETE", f"/projects/{project_id}")
    (found,) = (await api.get("/projects?recoverable=true"))["projects"]
    assert found["recoverable_until"] == "2026-01-08T00:00:00Z"
    clock.advance(7 * 86400)
    recovered = await api.request("POST", f"/projects/{project_id}/recover")
    assert actions_of(recovered) == ["tenant_attach"]
    assert [branch["name"] for branch in recovered["branches"]] == ["main"]
    assert (await api.actions(project_id))[-1] == "tenant_attach"
    assert await api.project_names() == [project_id]
    assert (await api.send("POST", f"/projects/{project_id}/recover")).status == 404


async def test_project_cannot_be_recovered_after_seven_days(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await api.request("DELETE", f"/projects/{project_id}")
    clock.advance(7 * 86400)
    assert (await api.get("/projects?recoverable=true"))["projects"]
    clock.advance(1)
    assert not (await api.get("/projects?recoverable=true"))["projects"]
    assert (await api.send("POST", f"/projects/{project_id}/recover")).status == 404


@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_allowed_ips_must_be_addresses(api: Client, project_id: str, method: str) -> None:
    path = "/projects" if method == "POST" else f"/projects/{project_id}"
    body = {"project": {"settings": {"allowed_ips": {"ips": ["127.0.0.1", "localhost"]}}}}
    words = "allowed_ips.ips: 'localhost' is invalid: expected an address"
    await api.expect_error(400, words, method, path, body)


@pytest.mark.fact("projects-7")
async def test_new_list_of_addresses_replaces_the_old_one(api: Client, project_id: str) -> None:
    path = f"/projects/{project_id}"
    entries = ["192.0.2.1", "192.0.2.1-192.0.2.9", "198.51.100.0/24", "2001:db8::/32"]
    for ips in (entries, ["203.0.113.5"]):
        body = {"project": {"settings": {"allowed_ips": {"ips": ips}}}}
        changed = await api.request("PATCH", path, body)
        assert changed["project"]["settings"]["allowed_ips"]["ips"] == ips


@pytest.mark.fact("projects-8", "projects-9", "projects-15")
async def test_deleted_project_is_listed_and_recovered_with_all_that_it_had(
    api: Client, clock: ManualClock
) -> None:
    created = await api.project(settings={"hipaa": True})
    path = f"/projects/{created['project']['id']}"
    main = f"{path}/branches/{created['branch']['id']}"
    await api.request("POST", f"{path}/permissions", {"email": "guest@example.com"})
    clock.advance(9)
    await api.request("POST", f"{main}/snapshot?name=friday")
    had = [f"{path}/branches", f"{path}/snapshots", f"{path}/permissions"]
    before = [await api.get(listed) for listed in had[1:]]
    clock.advance(9)
    await api.request("DELETE", path)
    page = await api.get("/projects?recoverable=true")
    assert page.keys() >= {"unavailable_project_ids", "applications", "integrations"}
    (listed,) = page["projects"]
    assert listed["deleted_at"] == "2026-01-01T00:00:18Z"
    assert listed["recoverable_until"] == "2026-01-08T00:00:18Z"
    recovered = await api.request("POST", f"{path}/recover")
    assert recovered["project"]["settings"]["hipaa"]
    assert [branch["name"] for branch in recovered["branches"]] == ["main"]
    assert [await api.get(listed) for listed in had[1:]] == before
    assert (await api.get(f"{path}/endpoints"))["endpoints"][0]["id"] == (
        created["endpoints"][0]["id"]
    )
