"""Missing projects are created one after another, each with one request."""

import asyncio

import pytest

from neonctl_async import ConnectionLostError, NeonClient, PermissionDeniedError
from neonctl_async.provisioning import creation
from neonctl_async.provisioning.fleet.new_projects import NewProjects
from neonctl_async.types import NewProject
from neonctl_local import Fault, LocalControlPlane

CREATE_PROJECT = "POST /projects"


def missing(neon: NeonClient, *names: str) -> NewProjects:
    projects = {
        name: NewProject(name=name, region_id="aws-eu-central-1", pg_version=16) for name in names
    }
    return NewProjects(neon, projects, None)


def creations(control_plane: LocalControlPlane) -> int:
    return sum(request.method == "POST" for request in control_plane.requests)


async def test_project_is_created_at_the_first_call(
    neon: NeonClient, control_plane: LocalControlPlane
) -> None:
    projects = missing(neon, "acme", "birch")
    ids = await asyncio.gather(*(projects.id_of("acme") for _ in range(3)))
    assert len(set(ids)) == creations(control_plane) == 1
    project = await neon.projects.get(ids[0])
    assert (project.name, project.region_id, project.pg_version) == ("acme", "aws-eu-central-1", 16)


async def test_projects_are_created_one_after_another(
    neon: NeonClient, control_plane: LocalControlPlane
) -> None:
    slow = control_plane.inject(Fault(route=CREATE_PROJECT, delay=0.05))
    projects = missing(neon, "acme", "birch")
    calls = [asyncio.create_task(projects.id_of(name)) for name in ("acme", "birch")]
    await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    assert slow.fired == 1
    assert len({await call for call in calls}) == 2


async def test_project_of_a_lost_response_is_found(
    neon: NeonClient, control_plane: LocalControlPlane
) -> None:
    await neon.projects.create(name="acme-2")
    control_plane.inject(Fault(route=CREATE_PROJECT, when="after", drop=True))
    project_id = await missing(neon, "acme").id_of("acme")
    assert (await neon.projects.get(project_id)).name == "acme"


async def test_project_that_is_not_found_is_not_created_again(
    neon: NeonClient, control_plane: LocalControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creation, "SEARCH_DELAYS", (0.0, 0.01))
    control_plane.inject(Fault(route=CREATE_PROJECT, drop=True))
    projects = missing(neon, "acme")
    for _ in range(2):
        with pytest.raises(ConnectionLostError) as caught:
            await projects.id_of("acme")
        assert caught.value.__notes__ == [
            "the project was not found: Neon may still create it; run the fleet again"
        ]
    assert creations(control_plane) == 1


async def test_rejected_creation_is_an_error_for_all_tenants_of_the_project(
    neon: NeonClient, control_plane: LocalControlPlane
) -> None:
    control_plane.inject(Fault(route=CREATE_PROJECT, status=403, times=1))
    projects = missing(neon, "acme", "birch")
    frames: list[int] = []
    for _ in range(3):
        with pytest.raises(PermissionDeniedError) as caught:
            await projects.id_of("acme")
        frames.append(len(caught.traceback))
    assert frames[1] == frames[2]
    assert await projects.id_of("birch")
    assert creations(control_plane) == 2
