"""Invitations to an organization."""

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


async def test_recipient_signs_up_and_signs_in_with_the_key(
    api: Client, visitor: Visitor, invitation: str
) -> None:
    path = f"{invitation}/accept"
    members = f"{api.organization_path}/members"
    assert f"/console{path}" in (await visitor.get(members)).links
    page = await visitor.post(await visitor.get(path), path, name="Cal")
    assert "User created Copy the key now" in page.text
    assert "The user joined \u2068First Organization\u2069." in page.text
    async with signed_in(api, token_of(page)) as cal:
        assert f"{EMAIL} you member" in (await cal.get(members)).text
    assert "No pending invitations" in (await visitor.get(members)).text


async def test_refused_name_is_kept(visitor: Visitor, invitation: str) -> None:
    path = f"{invitation}/accept"
    page = await visitor.post(await visitor.get(path), path, name="a\tb")
    assert (page.status, page.form(path).fields["name"]) == (400, "a\tb")


async def test_invitation_is_accepted_once(visitor: Visitor, invitation: str) -> None:
    path = f"{invitation}/accept"
    form = await visitor.get(path)
    await visitor.post(form, path, name="Cal")
    page = await visitor.post(form, path, name="Cal")
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


async def test_member_cannot_revoke_an_invitation(api: Client, invitation: str) -> None:
    async with member(api) as bea:
        page = await bea.get(f"{api.organization_path}/members")
        assert f"{EMAIL} member pending" in page.text
        assert "/console" + f"{invitation}/revoke" not in [form.action for form in page.forms]
        data = (await bea.get("/users/new")).form("/users/new").fields
        assert (await bea.request("POST", f"{invitation}/revoke", data=data)).status == 403


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
