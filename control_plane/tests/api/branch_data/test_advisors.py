"""Advice about databases."""

import pytest

from control_plane.tests.client import Client, branch_path_of


async def test_there_is_no_advice(api: Client, project_id: str) -> None:
    path = f"/projects/{project_id}/advisors"
    query = "?database_name=neondb&category=SECURITY&min_severity=WARN"
    assert await api.get(path) == await api.get(path + query) == {"issues": []}


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("category=STYLE", 400),
        ("min_severity=warn", 400),
        ("database_name=none", 404),
    ],
)
async def test_invalid_query_is_rejected(
    api: Client, project_id: str, query: str, status: int
) -> None:
    expected = query.partition("=")[0 if status == 400 else 2]
    path = f"/projects/{project_id}/advisors"
    await api.expect_error(status, expected, "GET", f"{path}?{query}")
    await api.expect_error(404, "branch not found", "GET", f"{path}?branch_id=br-none")


async def test_branch_with_two_databases_requires_a_database_name(
    api: Client, project_id: str
) -> None:
    branch = await api.branch(project_id)
    await api.add_database(branch_path_of(branch), "shop")
    path = f"/projects/{project_id}/advisors?branch_id={branch['branch']['id']}"
    await api.expect_error(400, "database_name", "GET", path)
    assert await api.get(f"{path}&database_name=shop") == {"issues": []}
