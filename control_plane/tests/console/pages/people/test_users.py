"""Users of the local control plane."""

import pytest

from control_plane.tests.client import Client
from control_plane.tests.console.people import signed_in, token_of
from control_plane.tests.console.visitor import Visitor

NEW = "/users/new"


async def test_created_user_signs_in_with_the_key(api: Client, visitor: Visitor) -> None:
    page = await visitor.post(
        await visitor.get(NEW), NEW, name="Bea Example", email=" bea@example.com "
    )
    assert "Key of Bea Example" in page.text
    assert "/console/sign-in" in page.links
    assert "The user is in no organization yet" in page.text
    async with signed_in(api, token_of(page)) as bea:
        assert "You are in no organization" in (await bea.get("/organizations")).text
    assert "Bea Example bea@example.com" in (await visitor.get("/users")).text


async def test_key_of_a_created_user_is_shown_once(visitor: Visitor) -> None:
    page = await visitor.post(await visitor.get(NEW), NEW, name="Bea", email="bea@example.com")
    again = await visitor.get(page.path)
    assert token_of(page) not in again.html


async def test_created_user_joins_the_organizations_that_sent_invitations(
    api: Client, visitor: Visitor
) -> None:
    body = {"invitations": [{"email": "bea@example.com", "role": "member"}]}
    await api.request("POST", f"{api.organization_path}/invitations", body)
    page = await visitor.post(await visitor.get(NEW), NEW, name="Bea", email="bea@example.com")
    assert "The user joined \u2068First Organization\u2069." in page.text


@pytest.mark.parametrize(
    ("email", "status"), [("no address", 400), ("FIRST.user@neon.invalid", 409)]
)
async def test_refused_user_is_explained_and_kept(
    visitor: Visitor, email: str, status: int
) -> None:
    page = await visitor.post(await visitor.get(NEW), NEW, name="Bea", email=email)
    assert page.status == status
    fields = page.form(NEW).fields
    assert (fields["name"], fields["email"]) == ("Bea", email)


async def test_users_are_listed_and_searched(api: Client, visitor: Visitor) -> None:
    for number in range(12):
        await api.control_plane.create_user(f"Person {number}", f"p{number}@example.com")
    page = await visitor.get("/users")
    assert "First User you" in page.text
    found = await visitor.get("/users?search=PERSON+1")
    assert "3 of 13 match" in found.text
    none = await visitor.get("/users?search=nobody")
    assert "No user matches the search" in none.text
