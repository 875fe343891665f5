"""Requests for what people do in Neon's console: sign up, create organizations, join and leave."""

from collections.abc import AsyncIterator

import pytest

from control_plane.tests.api.people.test_invitations import ADA, invite, roles
from control_plane.tests.client import Client, Http
from control_plane.tests.keys import member_key, organization_key
from neonctl_local import ManualClock, ids


@pytest.fixture
async def console(api: Client) -> AsyncIterator[Http]:
    """A client of the paths that Neon's API does not have, with the first key."""
    async with Http(api.base_url.removesuffix("/api/v2") + "/local/v1", api.key) as console:
        yield console


async def test_new_user_gets_a_personal_key(api: Client, console: Http) -> None:
    body = {"name": "Ada", "email": "ada@example.com"}
    created = await console.request("POST", "/users", body)
    me = await api.get("/users/me", key=created["api_key"]["key"])
    assert (me["id"], me["name"], me["email"]) == (created["user"]["id"], *body.values())
    assert created["organizations"] == []
    emails = [user["email"] for user in (await console.get("/users"))["users"]]
    assert emails == ["first.user@neon.invalid", "ada@example.com"]
    for email in ("ada@example.com", "ADA@Example.com"):
        again = body | {"email": email}
        await console.expect_error(409, "already exists", "POST", "/users", again)


async def test_creator_administers_a_new_organization(api: Client, console: Http) -> None:
    created = await console.request("POST", "/organizations", {"name": "Shop"})
    path = f"/organizations/{created['organization']['id']}"
    assert (await api.get(path))["name"] == "Shop"
    [entry] = (await api.get(f"{path}/members"))["members"]
    assert (entry["member"]["user_id"], entry["member"]["role"]) == (
        api.control_plane.user_id,
        "admin",
    )


async def new_secret(console: Http, invitation_id: str) -> str:
    """Create the secret of an invitation, as an administrator."""
    created = await console.request("POST", f"/invitations/{invitation_id}/secret")
    assert set(created) == {"secret"}
    return str(created["secret"])


async def test_recipient_of_an_invitation_accepts_it(api: Client, console: Http) -> None:
    [invitation_id] = await invite(api, ADA)
    path = f"/invitations/{invitation_id}/accept"
    body = {"name": "Ada", "secret": await new_secret(console, invitation_id)}
    stranger = await api.new_user_key("stranger@example.com")
    accepted = await console.request("POST", path, body, key=stranger)
    assert accepted["user"]["email"] == "ada@example.com"
    assert [joined["id"] for joined in accepted["organizations"]] == [api.control_plane.org_id]
    assert await api.get(api.organization_path, key=accepted["api_key"]["key"])
    await console.expect_error(409, "is accepted", "POST", path, body)
    await console.expect_error(409, "accepted", "POST", f"/invitations/{invitation_id}/secret")


async def test_member_cannot_become_the_administrator_who_was_invited(
    api: Client, console: Http
) -> None:
    """A member reads the ids and the addresses of invitations. Neither gives their rights."""
    [invitation_id] = await invite(api, ADA | {"role": "admin"})
    _, bea = await member_key(api, name="bea")
    [listed] = (await api.get(f"{api.organization_path}/invitations", key=bea))["invitations"]
    assert listed["id"] == invitation_id
    path = f"/invitations/{invitation_id}/accept"
    other = await console.request("POST", "/organizations", {"name": "Bea"}, key=bea)
    spec = {"invitations": [ADA]}
    others = f"/organizations/{other['organization']['id']}/invitations"
    [own] = (await api.request("POST", others, spec, key=bea))["invitations"]
    own_secret = (await console.request("POST", f"/invitations/{own['id']}/secret", key=bea))[
        "secret"
    ]
    for secret in ("", invitation_id, own_secret):
        body = {"name": "Bea", "secret": secret}
        await console.expect_error(403, "not the secret", "POST", path, body, key=bea)
    await console.expect_error(400, "secret", "POST", path, {"name": "Bea"}, key=bea)
    # The address is known too: signing up with it joins only organizations of the caller.
    body = {"name": "Bea", "secret": own_secret}
    accepted = await console.request("POST", f"/invitations/{own['id']}/accept", body, key=bea)
    assert [one["name"] for one in accepted["organizations"]] == ["Bea"]
    assert await roles(api) == {"first.user@neon.invalid": "admin", "bea@example.com": "member"}


async def test_user_whom_a_stranger_signs_up_joins_no_organization(
    api: Client, console: Http
) -> None:
    [invitation_id] = await invite(api, ADA | {"role": "admin"})
    stranger = await api.new_user_key("stranger@example.com")
    body = {"name": "Ada", "email": ADA["email"]}
    ada = await console.request("POST", "/users", body, key=stranger)
    assert ada["organizations"] == []
    path = f"/invitations/{invitation_id}/accept"
    accept = {"name": "Ada", "secret": await new_secret(console, invitation_id)}
    await console.expect_error(409, "a key of this user", "POST", path, accept, key=stranger)
    accepted = await console.request("POST", path, accept, key=ada["api_key"]["key"])
    assert accepted["user"]["id"] == ada["user"]["id"]
    assert (await roles(api))["ada@example.com"] == "admin"


async def test_user_whom_a_stranger_signs_up_needs_the_secret_of_a_later_invitation_too(
    api: Client, console: Http
) -> None:
    """Members read the address of the first one, before an administrator replaces it."""
    [first] = await invite(api, ADA | {"role": "admin"})
    stranger = await api.new_user_key("stranger@example.com")
    body = {"name": "Ada", "email": ADA["email"]}
    ada = (await console.request("POST", "/users", body, key=stranger))["api_key"]["key"]
    await console.request("DELETE", f"/invitations/{first}")
    [second] = await invite(api, ADA | {"role": "admin"})
    assert "ada@example.com" not in await roles(api)
    accept = {"name": "Ada", "secret": await new_secret(console, second)}
    await console.request("POST", f"/invitations/{second}/accept", accept, key=ada)
    assert (await roles(api))["ada@example.com"] == "admin"
    again = {"invitations": [ADA]}
    path = f"{api.organization_path}/invitations"
    await api.expect_error(409, "already a member", "POST", path, again)


async def test_stranger_cannot_create_the_user_that_a_project_is_shared_with(
    api: Client, console: Http, project_id: str
) -> None:
    path = f"/projects/{project_id}"
    await api.request("POST", f"{path}/permissions", {"email": ADA["email"]})
    stranger = await api.new_user_key("stranger@example.com")
    body = {"name": "Ada", "email": "ADA@example.com"}
    await console.expect_error(409, "is shared with", "POST", "/users", body, key=stranger)
    other = await console.request("POST", "/organizations", {"name": "Other"}, key=stranger)
    invited = await api.request(
        "POST",
        f"/organizations/{other['organization']['id']}/invitations",
        {"invitations": [ADA]},
        key=stranger,
    )
    invitation = f"/invitations/{invited['invitations'][0]['id']}"
    secret = (await console.request("POST", f"{invitation}/secret", key=stranger))["secret"]
    accept = {"name": "Ada", "secret": secret}
    await console.expect_error(
        409, "is shared with", "POST", f"{invitation}/accept", accept, key=stranger
    )
    assert ADA["email"] not in str(await console.get("/users"))
    ada = (await console.request("POST", "/users", body))["api_key"]["key"]
    assert await api.get(path, key=ada)


async def test_user_whom_an_administrator_signs_up_joins(api: Client, console: Http) -> None:
    await invite(api, ADA)
    created = await console.request("POST", "/users", {"name": "Ada", "email": ADA["email"]})
    assert [joined["id"] for joined in created["organizations"]] == [api.control_plane.org_id]


async def test_new_secret_replaces_the_one_before_and_only_its_hash_is_stored(
    api: Client, console: Http
) -> None:
    [invitation_id] = await invite(api, ADA)
    first = await new_secret(console, invitation_id)
    second = await new_secret(console, invitation_id)
    path = f"/invitations/{invitation_id}/accept"
    await console.expect_error(
        403, "not the secret", "POST", path, {"name": "Ada", "secret": first}
    )
    for shown in (
        await api.get(f"{api.organization_path}/invitations"),
        await console.get(f"{api.organization_path}/invitations"),
    ):
        assert second not in str(shown)
    assert ids.mask(f"POST /{second}") == "POST /neon_invitation_key_**********"
    await console.request("POST", path, {"name": "Ada", "secret": second})


async def test_invitations_are_listed_with_their_status(
    api: Client, console: Http, clock: ManualClock
) -> None:
    path = f"{api.organization_path}/invitations"
    [expired] = await invite(api, ADA)
    secrets = {expired: await new_secret(console, expired)}
    clock.advance(30 * 24 * 3600)
    [revoked] = await invite(api, ADA)
    secrets[revoked] = await new_secret(console, revoked)
    await console.request("DELETE", f"/invitations/{revoked}")
    [pending] = await invite(api, ADA)
    [listed, *_] = found = (await console.get(path))["invitations"]
    statuses = {invitation["id"]: invitation["status"] for invitation in found}
    assert statuses == {pending: "pending", revoked: "revoked", expired: "expired"}
    assert listed["expires_at"] == "2026-03-02T00:00:00Z"
    assert [shown["id"] for shown in (await api.get(path))["invitations"]] == [pending]
    for invitation_id, status in ((expired, "expired"), (revoked, "revoked")):
        accept = f"/invitations/{invitation_id}/accept"
        body = {"name": "Ada", "secret": secrets[invitation_id]}
        await console.expect_error(409, f"is {status}", "POST", accept, body)
        await console.expect_error(409, status, "DELETE", f"/invitations/{invitation_id}")


async def test_revoked_or_expired_invitation_gives_no_membership(
    api: Client, console: Http, clock: ManualClock
) -> None:
    await invite(api, ADA)
    clock.advance(30 * 24 * 3600)
    [revoked] = await invite(api, ADA)
    await console.request("DELETE", f"/invitations/{revoked}")
    created = await console.request("POST", "/users", {"name": "Ada", "email": ADA["email"]})
    assert created["organizations"] == []
    assert (
        await api.send("GET", api.organization_path, key=created["api_key"]["key"])
    ).status == 404


async def test_only_administrators_revoke_invitations(api: Client, console: Http) -> None:
    [invitation_id] = await invite(api, ADA)
    _, member = await member_key(api, name="bea")
    stranger = await api.new_user_key("stranger@example.com")
    path = f"/invitations/{invitation_id}"
    assert (await console.send("DELETE", path, key=member)).status == 403
    # The error does not name the organization.
    await console.expect_error(404, "invitation", "DELETE", path, key=stranger)
    assert (await console.send("DELETE", "/invitations/none")).status == 404


async def test_member_who_leaves_loses_access(api: Client, console: Http) -> None:
    project = (await api.project())["project"]["id"]
    _, member = await member_key(api, name="bea")
    assert await api.get(f"/projects/{project}", key=member)
    assert await console.request("POST", f"{api.organization_path}/leave", key=member) == {}
    assert (await api.send("GET", f"/projects/{project}", key=member)).status == 404
    await console.expect_error(
        422, "at least one administrator", "POST", f"{api.organization_path}/leave"
    )


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/users", None),
        ("POST", "/users", {"name": "Ada", "email": "ada@example.com"}),
        ("POST", "/organizations", {"name": "Shop"}),
        ("POST", "/invitations/none/accept", {"name": "Ada", "secret": ""}),
    ],
)
async def test_requests_of_people_need_a_personal_key(
    api: Client, console: Http, method: str, path: str, body: object
) -> None:
    _, token = await organization_key(api)
    await console.expect_error(403, "personal API key", method, path, body, key=token)
    assert (await console.send(method, path, body, key="")).status == 401


async def test_misspelt_field_is_refused(console: Http) -> None:
    body = {"name": "Ada", "email": "ada@example.com", "rôle": "admin"}
    await console.expect_error(400, "rôle", "POST", "/users", body)


async def test_other_web_pages_cannot_create_users(console: Http) -> None:
    body = {"name": "Ada", "email": "ada@example.com"}
    headers = {"Origin": "https://example.com"}
    assert (await console.send("POST", "/users", body, headers=headers)).status == 403
    assert (await console.send("GET", "/users", headers={"Host": "example.com"})).status == 421
    assert len((await console.get("/users"))["users"]) == 1
