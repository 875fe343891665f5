"""The connection string. Its password is hidden until it is requested."""

from control_plane.tests.client import Client
from control_plane.tests.console.visitor import Visitor
from neonctl_local.console.pages.connections import without_password


async def test_connection_string_has_no_password_until_it_is_requested(
    visitor: Visitor, api: Client, branch_path: str
) -> None:
    project_path = branch_path.partition("/branches")[0]
    uri = (
        await api.get(f"{project_path}/connection_uri?database_name=neondb&role_name=neondb_owner")
    )["uri"]
    secret = uri.partition("@")[0].rpartition(":")[2]
    for path in (project_path, f"{branch_path}/connection"):
        page = await visitor.get(path)
        assert secret not in page.html
        assert without_password(uri) in page.text
        shown = await visitor.post(page, f"{branch_path}/connection")
        assert uri in shown.text
        assert secret not in shown.path
        assert shown.headers["Cache-Control"] == "no-store"


async def test_database_role_and_pooling_are_chosen(
    visitor: Visitor, api: Client, branch_path: str
) -> None:
    await api.add_database(branch_path, "a/b")
    await api.request("POST", f"{branch_path}/roles", {"role": {"name": "r & w"}})
    query = "?database=a%2Fb&role=r+%26+w&pooled=yes"
    for path in (branch_path.partition("/branches")[0], f"{branch_path}/connection"):
        page = await visitor.get(path + query)
        assert "postgresql://r%20%26%20w@ep-" in page.text
        assert "-pooler." in page.text
        assert "/a%2Fb?" in page.text
        fields = page.form(f"{branch_path}/connection").fields
        assert (fields["database"], fields["role"], fields["pooled"]) == ("a/b", "r & w", "yes")


async def test_unknown_choice_falls_back_to_the_first_database_and_its_owner(
    visitor: Visitor, branch_path: str
) -> None:
    page = await visitor.get(f"{branch_path}/connection?database=x&role=y")
    assert "postgresql://neondb_owner@" in page.text
    assert "/neondb?" in page.text


async def test_branch_without_database_has_no_connection_string(
    visitor: Visitor, api: Client, branch_path: str
) -> None:
    await api.request("DELETE", f"{branch_path}/databases/neondb")
    page = await visitor.get(f"{branch_path}/connection")
    assert "The branch has no database" in page.text


async def test_address_of_an_emulated_database_comes_with_a_warning(
    visitor: Visitor, branch_path: str
) -> None:
    assert "accepts no connections" in (await visitor.get(f"{branch_path}/connection")).text


def test_password_is_removed_from_a_connection_string() -> None:
    uri = "postgresql://a%40b:p%3A%40w@host:5432/db?options=endpoint%3Dep-1&sslmode=disable"
    expected = "postgresql://a%40b@host:5432/db?options=endpoint%3Dep-1&sslmode=disable"
    assert without_password(uri) == expected
