"""Requests that no route handles."""

import pytest

from control_plane.tests.client import Client
from neonctl_local.api.description.published import description
from neonctl_local.server.routes import FIXED_PATHS, ROUTE_NAMES


async def test_unserved_endpoint_is_501_for_a_valid_key_only(api: Client) -> None:
    unserved = set(description().endpoints) - ROUTE_NAMES
    assert len(unserved) > 30
    for name in sorted(unserved):
        method, _, template = name.partition(" ")
        path = template.replace("{", "").replace("}", "")
        await api.expect_error(501, name, method, path)
        await api.expect_error(401, "", method, path, key="")


@pytest.mark.parametrize(
    ("method", "path"), [("PATCH", "/projects/shared"), ("DELETE", "/projects/x/branches/count")]
)
async def test_fixed_part_of_a_path_is_not_taken_for_an_id(
    api: Client, method: str, path: str
) -> None:
    reply = await api.send(method, path)
    assert (reply.status, reply.headers["Allow"]) == (405, "GET")
    assert f"is not allowed on '{path}': use GET" in reply.message


def test_fixed_paths_are_those_that_another_route_matches_too() -> None:
    paths = {name.partition(" ")[2] for name in ROUTE_NAMES}
    ambiguous = {
        path
        for path in paths
        for other in paths - {path}
        if path.count("/") == other.count("/")
        and all(
            mine == theirs or (theirs.startswith("{") and not mine.startswith("{"))
            for mine, theirs in zip(path.split("/"), other.split("/"), strict=True)
        )
    }
    assert ambiguous == FIXED_PATHS


async def test_path_outside_the_base_url_is_404(api: Client) -> None:
    base_url = api.base_url
    api.base_url = base_url.removesuffix("/api/v2")
    await api.expect_error(404, "all paths start with /api/v2", "GET", "/projects")
    await api.expect_error(404, "such as /api/v2/projects", "GET", "/api/v2")
    await api.expect_error(404, "has users, organizations and", "GET", "/local/v1/members")
