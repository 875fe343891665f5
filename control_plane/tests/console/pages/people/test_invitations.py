"""Invitations to an organization."""

import re

import pytest

from control_plane.tests.client import Client
from control_plane.tests.console.people import member, signed_in, token_of
from control_plane.tests.console.visitor import Visitor
from neonctl_local import ManualClock

EMAIL = "cal@example.com"


@pytest.fixture
async def invitation(api: Client) -> str:
    """The path of a pending invitation."""
    body = {"invitations": [{"email": EMAIL, "role": "member"}]}
    created = await api.request("POST", f"{api.organization_path}/invitations", body)
    return f"{api.organization_path}/invitations/{created['invitations'][0]['id']}"


async def secret_of(visitor: Visitor, invitation: str) -> str:
    """Create the secret of an invitation. Return it from the page that shows it once."""
    members = f"{invitation.partition('/invitations')[0]}/members"
    page = await visitor.post(await visitor.get(members), f"{invitation}/secret")
    assert "Secret created Copy the secret now" in page.text
    assert f"/console{invitation}/accept" in page.links
    assert "NEON_API_KEY" not in page.html
    secrets: set[str] = set(re.findall(r"neon_invitation_key_[0-9a-f]{32}", page.html))
    (secret,) = secrets
    again = await visitor.get(page.path)
    assert (again.path, secret in again.html) == ("/account/keys", False)
    return secret


async def test_recipient_signs_up_and_signs_in_with_the_key(
    api: Client, visitor: Visitor, invitation: str
) -> None:
    path = f"{invitation}/accept"
    members = f"{api.organization_path}/members"
    assert f"/console{path}" in (await visitor.get(members)).links
    secret = await secret_of(visitor, invitation)
    page = await visitor.post(await visitor.get(path), path, name="Cal", secret=f" {secret} ")
    assert "User created Copy the key now" in page.text
    assert "The user joined \u2068First Organization\u2069." in page.text
    async with signed_in(api, token_of(page)) as cal:
        assert f"{EMAIL} you member" in (await cal.get(members)).text
    assert "No pending invitations" in (await visitor.get(members)).text


async def test_refused_name_is_kept(visitor: Visitor, invitation: str) -> None:
    path = f"{invitation}/accept"
    page = await visitor.post(
        await visitor.get(path), path, name="a\tb", secret="neon_invitation_key_1"
    )
    assert (page.status, page.form(path).fields["name"]) == (400, "a\tb")
    assert "neon_invitation_key_1" not in page.html


async def test_wrong_secret_is_refused(visitor: Visitor, invitation: str) -> None:
    path = f"{invitation}/accept"
    page = await visitor.post(await visitor.get(path), path, name="Cal", secret="neon")
    assert (page.status, "not the secret" in page.text) == (403, True)


async def test_invitation_is_accepted_once(visitor: Visitor, invitation: str) -> None:
    path = f"{invitation}/accept"
    secret = await secret_of(visitor, invitation)
    form = await visitor.get(path)
    await visitor.post(form, path, name="Cal", secret=secret)
    page = await visitor.post(form, path, name="Cal", secret=secret)
    assert (page.status, "is accepted" in page.text) == (409, True)


async def test_administrator_revokes_an_invitation(
    api: Client, visitor: Visitor, invitation: str
) -> None:
    members = f"{api.organization_path}/members"
    form = await visitor.get(members)
    page = await visitor.post(form, f"{invitation}/revoke")
    assert (page.path, "Invitation revoked" in page.text) == (members, True)
    assert EMAIL not in page.text
    again = await visitor.post(form, f"{invitation}/revoke")
    assert (again.status, "is revoked" in again.text) == (409, True)


async def test_member_neither_revokes_an_invitation_nor_gets_its_secret(
    api: Client, invitation: str
) -> None:
    async with member(api) as bea:
        page = await bea.get(f"{api.organization_path}/members")
        assert f"{EMAIL} member pending" in page.text
        data = (await bea.get("/users/new")).form("/users/new").fields
        for action in ("revoke", "secret"):
            path = f"{invitation}/{action}"
            assert f"/console{path}" not in [form.action for form in page.forms]
            assert (await bea.request("POST", path, data=data)).status == 403


async def test_expired_invitation_is_listed_without_buttons(
    api: Client, visitor: Visitor, clock: ManualClock, invitation: str
) -> None:
    clock.advance(31 * 24 * 3600)
    page = await visitor.get(f"{api.organization_path}/members")
    assert f"{EMAIL} member expired since 2026-01-31" in page.text
    assert f"/console{invitation}/accept" not in page.links


async def test_people_outside_of_the_organization_see_no_invitation(
    api: Client, invitation: str
) -> None:
    async with signed_in(api, await api.new_user_key("dee@example.com")) as dee:
        assert (await dee.get(f"{invitation}/accept")).status == 404
        data = (await dee.get("/users/new")).form("/users/new").fields
        assert (await dee.request("POST", f"{invitation}/revoke", data=data)).status == 404


async def test_unknown_invitation_is_404(api: Client, visitor: Visitor) -> None:
    assert (await visitor.get(f"{api.organization_path}/invitations/none/accept")).status == 404
