"""The members of an organization: what administrators and members see and do."""

import pytest

from control_plane.tests.client import Client
from control_plane.tests.console.people import member
from control_plane.tests.console.visitor import Page, Visitor
from control_plane.tests.keys import member_key, organization_key


@pytest.fixture
def members(api: Client) -> str:
    """The path of the list of members."""
    return f"{api.organization_path}/members"


async def path_of(api: Client, email: str) -> str:
    """Return the path of a member."""
    members = f"{api.organization_path}/members"
    for found in (await api.get(members))["members"]:
        if found["user"]["email"] == email:
            return f"{members}/{found['member']['id']}"
    raise LookupError(email)


async def invite(visitor: Visitor, members: str, email: str, role: str = "member") -> Page:
    return await visitor.post(await visitor.get(members), members, email=email, role=role)


async def test_administrator_sees_members_with_buttons(
    api: Client, visitor: Visitor, members: str
) -> None:
    await member_key(api, name="bea")
    page = await visitor.get(members)
    assert "first.user@neon.invalid you admin 2026-01-01 00:00:00 UTC" in page.text
    assert "bea@example.com member 2026-01-01 00:00:00 UTC" in page.text
    bea, own = await path_of(api, "bea@example.com"), await path_of(api, "first.user@neon.invalid")
    for path in (f"{bea}/role", f"{bea}/remove", f"{own}/role"):
        assert f"/console{path}" in page.links
    assert f"/console{own}/remove" not in page.links


async def test_member_sees_members_without_buttons(api: Client, members: str) -> None:
    async with member(api) as bea:
        page = await bea.get(members)
        assert "first.user@neon.invalid admin" in page.text
        assert "Only administrators of the organization invite" in page.text
        assert "Change role" not in page.text
        assert [form.action for form in page.forms] == ["/console/sign-out"]
        path = await path_of(api, "first.user@neon.invalid")
        data = (await bea.get("/users/new")).form("/users/new").fields
        for action in ("role", "remove"):
            assert (await bea.get(f"{path}/{action}")).status == 403
            posted = await bea.request("POST", f"{path}/{action}", data=data | {"role": "member"})
            assert posted.status == 403
        posted = await bea.request(
            "POST", members, data=data | {"role": "admin", "email": "x@x.org"}
        )
        assert posted.status == 403
    assert (await api.get(path))["role"] == "admin"


async def test_person_with_an_account_becomes_a_member_at_once(
    api: Client, visitor: Visitor, members: str
) -> None:
    await api.new_user_key("bea@example.com")
    page = await invite(visitor, members, " bea@example.com ", "admin")
    assert "bea@example.com has an account and is a member now" in page.text
    assert "No pending invitations" in page.text
    assert (await api.get(await path_of(api, "bea@example.com")))["role"] == "admin"


async def test_person_without_an_account_gets_a_pending_invitation(
    visitor: Visitor, members: str
) -> None:
    page = await invite(visitor, members, "cal@example.com")
    assert "cal@example.com has a pending invitation" in page.text
    assert "cal@example.com member pending until 2026-01-31 00:00:00 UTC" in page.text


@pytest.mark.parametrize(("email", "status"), [("no address", 400), ("bea@example.com", 409)])
async def test_refused_invitation_is_explained_and_kept(
    api: Client, visitor: Visitor, members: str, email: str, status: int
) -> None:
    await member_key(api, name="bea")
    page = await invite(visitor, members, email, "admin")
    assert page.status == status
    fields = page.form(members).fields
    assert (fields["email"], fields["role"]) == (email, "admin")


async def test_administrator_changes_a_role(api: Client, visitor: Visitor, members: str) -> None:
    await member_key(api, name="bea")
    path = f"{await path_of(api, 'bea@example.com')}/role"
    form = await visitor.get(path)
    assert form.form(path).fields["role"] == "member"
    page = await visitor.post(form, path, role="admin")
    assert (page.path, "Role changed" in page.text) == (members, True)
    assert "bea@example.com admin" in page.text


async def test_last_administrator_keeps_the_role(api: Client, visitor: Visitor) -> None:
    path = f"{await path_of(api, 'first.user@neon.invalid')}/role"
    form = await visitor.get(path)
    assert "This is your own role" in form.text
    page = await visitor.post(form, path, role="member")
    assert page.status == 422
    assert "an organization needs at least one administrator" in page.text
    assert page.form(path).fields["role"] == "member"


async def test_confirmation_of_a_removal_shows_what_the_person_loses(
    api: Client, visitor: Visitor
) -> None:
    await api.project()
    _, key = await member_key(api, "admin", "bea")
    body = {"key_name": "of bea"}
    await api.request("POST", f"{api.organization_path}/api_keys", body, key=key)
    await organization_key(api, "of another")
    page = await visitor.get(f"{await path_of(api, 'bea@example.com')}/remove")
    assert "loses access to all projects of the organization at once" in page.text
    assert "Projects of the organization 1" in page.text
    assert "The API key of the organization that this person created stays valid" in page.text
    assert f"/console{api.organization_path}/keys?search=bea" in page.links


async def test_removed_member_loses_access_at_once(
    api: Client, visitor: Visitor, members: str, project_id: str
) -> None:
    async with member(api) as bea:
        path = f"{await path_of(api, 'bea@example.com')}/remove"
        confirmation = await visitor.get(path)
        assert (await bea.get(members)).status == 200
        page = await visitor.post(confirmation, path)
        assert (page.path, "Member removed" in page.text) == (members, True)
        assert "bea@example.com" not in page.text
        assert (await bea.get(members)).status == 404
        assert project_id not in (await bea.get("")).html
        assert (await visitor.post(confirmation, path)).status == 404


async def test_removal_of_oneself_is_leaving(api: Client, visitor: Visitor) -> None:
    path = f"{await path_of(api, 'first.user@neon.invalid')}/remove"
    assert (await visitor.get(path)).path == f"{api.organization_path}/leave"


async def test_long_list_of_members_has_pages(
    api: Client, visitor: Visitor, members: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neonctl_local.console.pages.people.members.ROWS", 2)
    for name in ("bea", "cal"):
        await member_key(api, name=name)
    first = await visitor.get(members)
    (link,) = [link for link in first.links if "cursor=" in link]
    second = await visitor.get(link.removeprefix("/console"))
    shown = [
        [name in page.text for name in ("neon.invalid you", "bea@", "cal@")]
        for page in (first, second)
    ]
    assert sorted(map(sum, shown)) == [1, 2]
    assert f"/console{members}" in second.links
    assert (await visitor.get(f"{members}?cursor=none")).status == 400
