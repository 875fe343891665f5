"""Only projects that exist nowhere count as missing."""

from typing import Any

from msgspec import to_builtins

from neonctl_async import NeonClient
from neonctl_async.provisioning.fleet.preparing import read_content, read_projects
from neonctl_local import LocalControlPlane
from tests.provisioning.fleet.records import PROJECT_ID, project
from tests.support.records import client_of
from tests.support.server import MisbehavingServer, Received, Respond, http_response

OTHER_ID = "calm-sun-87654321"


async def test_listed_projects_are_found_by_id_and_by_name(
    neon: NeonClient, control_plane: LocalControlPlane
) -> None:
    created = [await neon.projects.create(name=name) for name in ("acme", "birch", "cobalt")]
    ids = [one.project.id for one in created]
    before = control_plane.requests_served
    found = await read_projects(neon, {"acme", ids[1], "unknown"}, None)
    assert sorted(one.id for one in found) == sorted(ids[:2])
    assert control_plane.requests_served == before + 2  # two pages, the second one empty


async def test_content_has_computes_if_requested(neon: NeonClient) -> None:
    created = (await neon.projects.create(name="acme")).project
    content = await read_content(neon, created, with_computes=True)
    assert [one.name for one in content.branches] == ["main"]
    assert [one.branch_id for one in content.endpoints] == [content.branches[0].id]
    assert (await read_content(neon, created, with_computes=False)).endpoints == []


async def test_projects_that_the_list_lacks_are_read_by_id() -> None:
    by_id = {id: project(id, name) for id, name in ((PROJECT_ID, "acme"), (OTHER_ID, "birch"))}

    def respond(request: Received) -> Respond:
        if request.path == "/api/v2/projects":
            page: dict[str, Any] = {"projects": [], "unavailable_project_ids": [PROJECT_ID]}
            return http_response(200, page)
        found = by_id.get(request.path.rpartition("/")[2])
        if found is None:
            return http_response(404, {"message": "not found"})
        return http_response(200, {"project": to_builtins(found)})

    async with MisbehavingServer(respond) as server, client_of(server) as neon:
        wanted = {"acme", OTHER_ID, "deleted-sun-11111111"}
        found = await read_projects(neon, wanted, "org-1")
    assert {one.id for one in found} == {PROJECT_ID, OTHER_ID}
    assert "org_id=org-1" in server.received[0].target
    assert len(server.received) == 4
