"""Tenants of one server, and their reset."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from control_plane.tests.client import Client, Http
from neonctl_local import Fault, LocalControlPlane, RateLimits


@pytest.fixture
async def second(control_plane: LocalControlPlane) -> AsyncIterator[Http]:
    """Return a client of a second tenant."""
    tenant = await control_plane.add_tenant()
    async with Http(control_plane.base_url, tenant.api_key) as http:
        yield http


async def test_tenants_do_not_see_each_others_data(api: Client, second: Http) -> None:
    await api.project(name="first's")
    assert await second.project_names() == []
    await second.send("POST", "/projects", {"project": {"name": "second's"}})
    assert (await api.project_names(), await second.project_names()) == (["first's"], ["second's"])


async def test_tenants_do_not_share_faults_requests_and_planned_failures(
    control_plane: LocalControlPlane, api: Client
) -> None:
    tenant = await control_plane.add_tenant()
    before = control_plane.requests_served
    async with Http(control_plane.base_url, tenant.api_key) as second:
        broken = tenant.inject(Fault(route="GET /projects", status=503))
        await tenant.fail_next("create_branch")
        assert (await api.send("GET", "/projects")).status == 200
        assert (await second.send("GET", "/projects")).status == 503
    assert broken.fired == 1
    assert (control_plane.requests_served - before, tenant.requests_served) == (1, 1)
    assert tenant.requests == (("GET", "/projects", 503),)
    assert (list(control_plane.faults), await control_plane.planned_failures()) == ([], [])


async def test_key_selects_its_tenant_even_after_it_is_revoked(
    control_plane: LocalControlPlane,
) -> None:
    tenant = await control_plane.add_tenant()
    async with Http(control_plane.base_url, tenant.api_key) as second:
        made = (await second.send("POST", "/api_keys", {"key_name": "other"})).json
        async with Http(control_plane.base_url, made["key"]) as other:
            await other.send("POST", "/projects", {"project": {"name": "by the other key"}})
            assert await second.project_names() == ["by the other key"]
            await second.send("DELETE", f"/api_keys/{made['id']}")
            assert (await other.send("GET", "/projects")).status == 401
    assert tenant.requests[-1] == ("GET", "/projects", 401)


@pytest.mark.control_plane(rate_limits=RateLimits(account_per_minute=1))
async def test_tenants_do_not_share_rate_limits(api: Client, second: Http) -> None:
    for client in (api, second):
        assert [(await client.send("GET", "/projects")).status for _ in range(2)] == [200, 429]


async def test_adding_a_tenant_needs_a_running_server() -> None:
    with pytest.raises(RuntimeError, match="not running"):
        await LocalControlPlane().add_tenant()


async def test_reset_keeps_only_the_first_user_organization_and_key(
    control_plane: LocalControlPlane, api: Client
) -> None:
    await api.project(name="old")
    key_id = (await api.get("/api_keys"))[0]["id"]
    await control_plane.create_user("Somebody", "somebody@example.com")
    await control_plane.create_organization("Another")
    await control_plane.remove_member(control_plane.org_id, await joined(control_plane))
    await control_plane.fail_next("create_branch")
    control_plane.inject(Fault(status=500))
    await control_plane.reset()
    assert (control_plane.requests_served, list(control_plane.faults)) == (0, [])
    assert await control_plane.planned_failures() == []
    assert await api.project_names() == []
    assert [key["id"] for key in (await api.get("/api_keys"))] == [key_id]
    mine = (await api.get("/users/me/organizations"))["organizations"]
    assert [organization["id"] for organization in mine] == [control_plane.org_id]
    assert (await api.get("/users/me"))["id"] == control_plane.user_id


async def joined(control_plane: LocalControlPlane) -> str:
    """Add a second administrator, so that the first can leave."""
    user_id = await control_plane.create_user("Second", "second@example.com")
    await control_plane.add_member(control_plane.org_id, user_id, "admin")
    return control_plane.user_id


async def test_reset_restores_a_revoked_first_key(
    control_plane: LocalControlPlane, api: Client
) -> None:
    key_id = (await api.get("/api_keys"))[0]["id"]
    await api.send("DELETE", f"/api_keys/{key_id}")
    assert (await api.send("GET", "/projects")).status == 401
    await control_plane.reset()
    assert (await api.send("GET", "/projects")).status == 200


@pytest.mark.control_plane(rate_limits=RateLimits(account_per_minute=1))
async def test_reset_clears_the_rate_limits(api: Client) -> None:
    await api.send("GET", "/projects")
    await api.control_plane.reset()
    assert (await api.send("GET", "/projects")).status == 200


async def test_reset_returns_to_the_saved_data_as_often_as_needed(
    control_plane: LocalControlPlane, api: Client
) -> None:
    project_id = (await api.project(name="kept"))["project"]["id"]
    await control_plane.save()
    key_id = (await api.get("/api_keys"))[0]["id"]
    for _ in range(2):
        await api.send("DELETE", f"/projects/{project_id}")
        await api.project(name="new")
        control_plane.inject(Fault(route="GET /regions", status=500))
        await api.send("DELETE", f"/api_keys/{key_id}")
        await control_plane.reset()
        assert await api.project_names() == ["kept"]
        assert list(control_plane.faults) == []


async def test_saved_data_of_a_file_is_the_target_of_resets_until_the_server_stops(
    tmp_path: Path,
) -> None:
    path = tmp_path / "control-plane.db"
    async with LocalControlPlane(data=path) as server:
        key = server.api_key
        async with Http(server.base_url, key) as http:
            await http.send("POST", "/projects", {"project": {"name": "kept"}})
            await server.save()
            await http.send("POST", "/projects", {"project": {"name": "new"}})
            await server.reset()
            assert await http.project_names() == ["kept"]
    async with LocalControlPlane(data=path) as server, Http(server.base_url, key) as http:
        assert await http.project_names() == ["kept"]
        await server.reset()
        assert await http.project_names() == []
