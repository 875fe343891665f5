"""Connection URIs."""

import pytest

from control_plane.tests.client import Client


async def test_connection_uri_is_for_the_default_branch_by_default(
    api: Client, project_id: str, branch_path: str
) -> None:
    uri = f"/projects/{project_id}/connection_uri?database_name=neondb&role_name=neondb_owner"
    password = (await api.get(f"{branch_path}/roles/neondb_owner/reveal_password"))["password"]
    (endpoint,) = (await api.get(f"{branch_path}/endpoints"))["endpoints"]
    host = endpoint["host"]
    direct = f"postgresql://neondb_owner:{password}@{host}/neondb?sslmode=require"
    assert await api.get(uri) == {"uri": direct}
    pooled = await api.get(f"{uri}&pooled=true")
    assert pooled == {"uri": direct.replace(host, host.replace(".", "-pooler.", 1))}
    other = await api.branch(project_id, compute=True)
    found = await api.get(f"{uri}&branch_id={other['branch']['id']}")
    assert other["endpoints"][0]["host"] in found["uri"]
    chosen = await api.get(f"{uri}&endpoint_id={endpoint['id']}")
    assert chosen == {"uri": direct}


@pytest.mark.parametrize(
    ("query", "status", "word"),
    [
        ("role_name=neondb_owner", 400, "database_name"),
        ("database_name=neondb", 400, "role_name"),
        ("database_name=none&role_name=neondb_owner", 404, "none"),
        ("database_name=neondb&role_name=none", 404, "none"),
        (
            "database_name=neondb&role_name=neondb_owner&branch_id=br-none-1",
            404,
            "branch not found",
        ),
        ("database_name=neondb&role_name=neondb_owner&endpoint_id=ep-none-1", 404, "ep-none-1"),
        ("database_name=neondb&role_name=neondb_owner&pooled=2", 400, "pooled"),
    ],
)
async def test_invalid_connection_uri_request_is_rejected(
    api: Client, project_id: str, query: str, status: int, word: str
) -> None:
    await api.expect_error(status, word, "GET", f"/projects/{project_id}/connection_uri?{query}")


async def test_branch_without_a_compute_has_no_connection_uri(api: Client, project_id: str) -> None:
    branch_id = (await api.branch(project_id))["branch"]["id"]
    query = f"database_name=neondb&role_name=neondb_owner&branch_id={branch_id}"
    path = f"/projects/{project_id}/connection_uri?{query}"
    await api.expect_error(400, "no endpoint", "GET", path)


@pytest.mark.fact("branches-23")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("roles", {"role": {"name": "ada"}}),
        ("databases", {"database": {"name": "shop", "owner_name": "neondb_owner"}}),
    ],
)
async def test_response_has_no_uris_if_the_parent_has_two_roles_or_databases(
    api: Client, project_id: str, branch_path: str, path: str, body: dict[str, object]
) -> None:
    assert (await api.branch(project_id, compute=True))["connection_uris"]
    await api.request("POST", f"{branch_path}/{path}", body)
    assert "connection_uris" not in await api.branch(project_id, compute=True)
