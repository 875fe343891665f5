"""The instruments belong to the first user. Other people see the requests of their accounts."""

from control_plane.tests.client import Client
from control_plane.tests.console.visitor import Visitor
from neonctl_local import Fault


async def test_other_users_see_only_the_requests_of_their_accounts(api: Client) -> None:
    control_plane = api.control_plane
    user_id = await control_plane.create_user("Member", "member@example.com")
    org_id = await control_plane.create_organization("Shared")
    await control_plane.add_member(org_id, user_id)
    key = await control_plane.create_api_key("their key", user_id=user_id)
    created = await api.request("POST", f"/organizations/{org_id}/api_keys", {"key_name": "ours"})
    await api.send("GET", "/projects/secret-project-1")
    await api.send("GET", "/projects/secret-project-2", key="")
    await api.send("GET", "/users/me/organizations", key=key)
    await api.send("GET", "/projects", key=created["key"])
    async with Visitor(control_plane) as visitor:
        await visitor.sign_in_with_key(key)
        page = await visitor.get("/requests")
        assert "secret-project" not in page.html
        assert "first key" not in page.html
        assert "/users/me/organizations 200" in page.text
        assert "their key" in page.text
        assert "ours" in page.text
        limits = await visitor.get("/limits")
        assert "Member Personal account 1 of 700" in limits.text
        assert "Shared Organization 1 of 700" in limits.text
        assert "First Organization" not in limits.text


async def test_only_the_first_user_plans_faults(api: Client) -> None:
    control_plane = api.control_plane
    user_id = await control_plane.create_user("Member", "member@example.com")
    key = await control_plane.create_api_key("their key", user_id=user_id)
    control_plane.inject(Fault(route="GET /projects", status=503))
    async with Visitor(control_plane) as visitor:
        await visitor.sign_in_with_key(key)
        page = await visitor.get("/faults")
        assert page.status == 403
        assert "only the first user can plan them" in page.text
        limits = await visitor.get("/limits")
        token = limits.form("/sign-out").fields["csrf"]
        for path in ("plan", "clear", "failures/plan", "failures/clear"):
            fields = {"csrf": token, "fault": "all", "failure": "all", "kind": "drop", "route": "*"}
            refused = await visitor.request("POST", f"/faults/{path}", data=fields)
            assert refused.status == 403
    assert len(control_plane.faults) == 1
    assert await control_plane.planned_failures() == []
