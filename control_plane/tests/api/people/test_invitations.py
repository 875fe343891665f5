"""Invitations to an organization, as the API publishes them."""

import pytest

from control_plane.tests.client import Client
from control_plane.tests.keys import member_key, organization_key
from neonctl_local import ManualClock

ADA = {"email": "ada@example.com", "role": "member"}


async def invite(api: Client, *specs: dict[str, str], key: str | None = None) -> list[str]:
    """Create invitations. Return their ids."""
    path = f"{api.organization_path}/invitations"
    created = await api.request("POST", path, {"invitations": list(specs)}, key=key)
    return [invitation["id"] for invitation in created["invitations"]]


async def roles(api: Client) -> dict[str, str]:
    """Return the roles of the members by email address."""
    page = await api.get(f"{api.organization_path}/members")
    return {entry["user"]["email"]: entry["member"]["role"] for entry in page["members"]}


async def test_person_without_account_joins_when_they_sign_up(api: Client) -> None:
    [invitation_id] = await invite(api, ADA)
    assert "ada@example.com" not in await roles(api)
    [listed] = (await api.get(f"{api.organization_path}/invitations"))["invitations"]
    assert listed == ADA | {
        "id": invitation_id,
        "org_id": api.control_plane.org_id,
        "invited_by": api.control_plane.user_id,
        "invited_at": "2026-01-01T00:00:00Z",
    }
    await api.control_plane.create_user("Ada", "Ada@Example.com")
    assert (await roles(api))["Ada@Example.com"] == "member"
    assert len((await api.get(f"{api.organization_path}/invitations"))["invitations"]) == 1


async def test_invitations_of_one_request_are_listed_with_the_last_first(api: Client) -> None:
    ids = await invite(api, ADA, ADA | {"email": "bea@example.com"})
    listed = (await api.get(f"{api.organization_path}/invitations"))["invitations"]
    assert [invitation["id"] for invitation in listed] == ids[::-1]


@pytest.mark.fact("orgs-1")
async def test_person_with_account_joins_at_once(api: Client) -> None:
    await api.new_user_key("ada@example.com")
    await invite(api, ADA | {"role": "admin"})
    assert (await roles(api))["ada@example.com"] == "admin"


async def test_member_or_person_with_pending_invitation_is_not_invited_again(api: Client) -> None:
    path = f"{api.organization_path}/invitations"
    await member_key(api, name="bea")
    specs = [ADA, {"email": "bea@example.com", "role": "member"}]
    await api.expect_error(409, "already a member", "POST", path, {"invitations": specs})
    assert (await api.get(path))["invitations"] == []
    await invite(api, ADA)
    again = {"invitations": [ADA | {"email": "ADA@example.com"}]}
    await api.expect_error(409, "pending invitation", "POST", path, again)


@pytest.mark.parametrize("email", ["a\0b@example.com", "a\x1b[2J@example.com"])
async def test_email_address_has_no_control_characters(api: Client, email: str) -> None:
    body = {"invitations": [ADA | {"email": email}]}
    path = f"{api.organization_path}/invitations"
    await api.expect_error(400, "an email address", "POST", path, body)


async def test_person_is_invited_once_in_a_request(api: Client) -> None:
    # The first invitation of the request is not created, so it cannot be revoked.
    body = {"invitations": [ADA, ADA | {"email": "ADA@example.com"}]}
    path = f"{api.organization_path}/invitations"
    await api.expect_error(409, "invites 'ADA@example.com' twice", "POST", path, body)


async def test_expired_invitation_is_not_listed_and_is_replaced(
    api: Client, clock: ManualClock
) -> None:
    await invite(api, ADA)
    clock.advance(30 * 24 * 3600)
    assert (await api.get(f"{api.organization_path}/invitations"))["invitations"] == []
    await invite(api, ADA)
    assert len((await api.get(f"{api.organization_path}/invitations"))["invitations"]) == 1


async def test_person_invited_by_two_organizations_joins_both(api: Client) -> None:
    other = await api.control_plane.create_organization("Other")
    await invite(api, ADA)
    path = f"/organizations/{other}/invitations"
    await api.request("POST", path, {"invitations": [ADA]})
    key = await api.new_user_key("ada@example.com")
    found = await api.get("/users/me/organizations", key=key)
    assert {organization["id"] for organization in found["organizations"]} == {
        api.control_plane.org_id,
        other,
    }


@pytest.mark.fact("orgs-3", "orgs-5")
async def test_administrators_invite_and_members_and_organization_keys_only_read(
    api: Client,
) -> None:
    _, user_key = await member_key(api, name="bea")
    path = f"{api.organization_path}/invitations"
    reply = await api.send("POST", path, {"invitations": [ADA]}, key=user_key)
    assert reply.status == 403
    _, token = await organization_key(api)
    await api.expect_error(403, "personal", "POST", path, {"invitations": [ADA]}, key=token)
    await invite(api, ADA)
    for key in (user_key, token):
        assert len((await api.get(path, key=key))["invitations"]) == 1
    stranger = await api.new_user_key("stranger@example.com")
    assert (await api.send("GET", path, key=stranger)).status == 404


@pytest.mark.parametrize(
    ("status", "spec", "words"),
    [
        (400, {"role": "member"}, "invitations[0].email"),
        (400, {"email": "ada", "role": "member"}, "an email address"),
        (400, {"email": "ada@example.com"}, "invitations[0].role"),
        (400, {"email": "ada@example.com", "role": "owner"}, "invitations[0].role"),
        (422, {"email": "ada@example.com", "role": "viewer"}, "'viewer' is not available"),
    ],
)
async def test_invalid_invitation_is_refused(
    api: Client, status: int, spec: dict[str, str], words: str
) -> None:
    path = f"{api.organization_path}/invitations"
    await api.expect_error(status, words, "POST", path, {"invitations": [spec]})
