"""The databases of a branch."""

from control_plane.tests.client import Client
from control_plane.tests.console.visitor import Visitor


async def database_names(api: Client, branch_path: str) -> list[str]:
    return [found["name"] for found in (await api.get(f"{branch_path}/databases"))["databases"]]


async def test_database_is_created(visitor: Visitor, api: Client, branch_path: str) -> None:
    path = f"{branch_path}/databases/new"
    page = await visitor.post(await visitor.get(path), path, name="a/b & c")
    assert page.path == branch_path
    assert "Database a/b & c created. Started: Apply config." in page.text
    project_id = branch_path.split("/")[2]
    branch_id = branch_path.split("/")[4]
    assert f"/console/projects/{project_id}/operations?branch={branch_id}" in page.links
    assert await database_names(api, branch_path) == ["neondb", "a/b & c"]


async def test_taken_name_is_shown_with_the_error(visitor: Visitor, branch_path: str) -> None:
    path = f"{branch_path}/databases/new"
    page = await visitor.post(await visitor.get(path), path, name="neondb")
    assert (page.status, "already exists" in page.text) == (409, True)
    assert page.form(path).fields["name"] == "neondb"


async def test_database_with_a_difficult_name_is_deleted(
    visitor: Visitor, api: Client, branch_path: str
) -> None:
    for name, quoted in (("..", ".."), ("a/b & <c>?#", "a/b%20%26%20%3Cc%3E%3F%23")):
        await api.add_database(branch_path, name)
        page = await visitor.get(f"{branch_path}/databases/delete?name={quoted}")
        assert name in page.text
        page = await visitor.post(page, f"{branch_path}/databases/delete")
        assert f"Database {name} deleted. Started: " in page.text
        assert await database_names(api, branch_path) == ["neondb"]


async def test_database_that_was_deleted_before_stays_deleted(
    visitor: Visitor, api: Client, branch_path: str
) -> None:
    await api.add_database(branch_path, "old")
    form = await visitor.get(f"{branch_path}/databases/delete?name=old")
    await api.request("DELETE", f"{branch_path}/databases/old")
    page = await visitor.post(form, f"{branch_path}/databases/delete")
    assert (page.status, "Database old deleted." in page.text) == (200, True)
    assert "Started" not in page.text


async def test_deletion_of_a_missing_database_is_not_found(
    visitor: Visitor, branch_path: str
) -> None:
    page = await visitor.get(f"{branch_path}/databases/delete?name=other")
    assert (page.status, "'other' not found" in page.text) == (404, True)
    assert (await visitor.get(f"{branch_path}/databases/delete")).status == 404


async def test_dashboard_lists_databases_and_roles(
    visitor: Visitor, api: Client, branch_path: str
) -> None:
    await api.add_database(branch_path, "a b")
    page = await visitor.get(branch_path.partition("/branches")[0])
    assert 'id="database-a%20b"' in page.html
    assert f"/console{branch_path}/databases/delete?name=a%20b" in page.links
    assert f"/console{branch_path}/roles/reset?name=neondb_owner" in page.links
