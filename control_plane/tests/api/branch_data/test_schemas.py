"""Schemas of databases, which are all empty."""

import pytest

from control_plane.tests.client import Client, branch_path_of


async def child_of_main(api: Client, project_id: str) -> str:
    """Create a branch of the default branch. Return its path."""
    return branch_path_of(await api.branch(project_id))


async def test_schema_is_returned_as_sql_or_json(api: Client) -> None:
    project_id = (await api.project(pg_version=16))["project"]["id"]
    path = f"{await child_of_main(api, project_id)}/schema?db_name=neondb"
    for query in ("", "&format=sql", "&lsn=0/1A2B3C", "&timestamp=2026-01-01T00:00:00Z"):
        schema = await api.get(f"{path}{query}")
        assert (set(schema), "database version 16" in schema["sql"]) == ({"sql"}, True)
    assert await api.get(f"{path}&format=json") == {"json": {"tables": []}}


async def test_comparison_shows_no_difference(api: Client, project_id: str) -> None:
    path = f"{await child_of_main(api, project_id)}/compare_schema?db_name=neondb"
    assert await api.get(path) == {"diff": ""}
    base = (await api.branch(project_id))["branch"]["id"]
    query = f"&base_branch_id={base}&lsn=0/1&base_timestamp=2026-01-01T00:00:00Z"
    assert await api.get(f"{path}{query}") == {"diff": ""}


@pytest.mark.parametrize("resource", ["schema", "compare_schema"])
@pytest.mark.parametrize(
    ("query", "status", "word"),
    [
        ("", 400, "db_name"),
        ("db_name=none", 404, "'none'"),
        ("db_name=neondb&lsn=0/1&timestamp=2026-01-01T00:00:00Z", 400, "lsn"),
        ("db_name=neondb&timestamp=now", 400, "timestamp"),
        ("db_name=neondb&lsn=now", 400, ": lsn:"),
    ],
)
async def test_error_for_an_invalid_query_parameter_names_it(
    api: Client, project_id: str, resource: str, query: str, status: int, word: str
) -> None:
    path = f"{await child_of_main(api, project_id)}/{resource}?{query}"
    await api.expect_error(status, word, "GET", path)


@pytest.mark.parametrize(
    ("resource", "query", "status", "word"),
    [
        ("schema", "format=xml", 400, "format"),
        ("compare_schema", "base_branch_id=none", 404, "branch not found"),
        ("compare_schema", "base_lsn=0/1&base_timestamp=2026-01-01T00:00:00Z", 400, "base_lsn"),
    ],
)
async def test_unknown_format_or_base_is_rejected(
    api: Client, project_id: str, resource: str, query: str, status: int, word: str
) -> None:
    path = f"{await child_of_main(api, project_id)}/{resource}?db_name=neondb&{query}"
    await api.expect_error(status, word, "GET", path)


async def test_comparison_requires_the_database_in_both_branches(
    api: Client, project_id: str
) -> None:
    path = await child_of_main(api, project_id)
    await api.add_database(path, "own")
    assert (await api.send("GET", f"{path}/schema?db_name=own")).status == 200
    await api.expect_error(404, "'own'", "GET", f"{path}/compare_schema?db_name=own")


async def test_comparison_of_a_branch_without_a_parent_requires_a_base(
    api: Client, branch_path: str
) -> None:
    path = f"{branch_path}/compare_schema?db_name=neondb"
    await api.expect_error(400, "base_branch_id", "GET", path)
