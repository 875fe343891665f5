"""The plan of a fleet is made before anything is created. All problems are reported at once."""

import pytest

from neonctl_async import AuthenticationError, NeonClient
from neonctl_async.provisioning.fleet import Fleet, FleetError, Tenant
from neonctl_local import Fault, LocalControlPlane
from tests.provisioning.fleet.records import tenant


async def problems(neon: NeonClient, *tenants: Tenant) -> tuple[str, ...]:
    with pytest.raises(FleetError) as caught:
        await Fleet(neon, tenants).apply()
    return caught.value.problems


@pytest.fixture
async def ids(neon: NeonClient) -> list[str]:
    """The ids of the projects acme and birch."""
    return [
        (await neon.projects.create(name=name, wait=True)).project.id for name in ("acme", "birch")
    ]


async def test_nothing_is_created_for_a_fleet_with_problems(
    neon: NeonClient, control_plane: LocalControlPlane, ids: list[str]
) -> None:
    before = control_plane.requests_served
    assert await problems(
        neon, tenant("b-1"), tenant("b-2", parent="x"), tenant("b-3", "birch", parent="y")
    ) == (
        f"the parent of acme/b-2 is 'x': expected the name or id of a branch of project {ids[0]}",
        f"the parent of birch/b-3 is 'y': expected the name or id of a branch of project {ids[1]}",
    )
    [missing] = await problems(neon, tenant("b-1"), tenant("b-1", "cobalt"))
    assert missing.startswith("no project has the name 'cobalt'")
    methods = {method for method, *_ in list(control_plane.requests)[before:]}
    assert methods == {"GET"}


async def test_branch_that_is_named_by_project_id_and_by_name_is_a_problem(
    neon: NeonClient, ids: list[str]
) -> None:
    assert await problems(neon, tenant("b-1"), tenant("b-2", ids[0]), tenant("b-1", ids[0])) == (
        f"{ids[0]}/b-1 and acme/b-1 are the same branch: expected it once",
    )


async def test_circle_of_parents_is_a_problem(neon: NeonClient, ids: list[str]) -> None:
    assert ids
    [problem] = await problems(neon, tenant("b-1", parent="b-2"), tenant("b-2", parent="b-1"))
    assert problem == "the parents of acme/b-1 form a circle: b-1 -> b-2"


async def test_rejected_key_is_an_error_of_the_plan(
    neon: NeonClient, control_plane: LocalControlPlane, ids: list[str]
) -> None:
    assert ids
    control_plane.inject(Fault(route="GET /projects/{project_id}/branches", status=401))
    with pytest.raises(AuthenticationError):
        await Fleet(neon, [tenant("b-1"), tenant("b-1", "birch")]).plan()


async def test_plan_without_computes_lists_only_branches(
    neon: NeonClient, control_plane: LocalControlPlane, ids: list[str]
) -> None:
    before = control_plane.requests_served
    plan = await Fleet(neon, [tenant("b-1", ids[0], compute=False)]).plan()
    assert [one.action for one in plan.tenants] == ["create"]
    paths = [path for _, path, _ in list(control_plane.requests)[before:]]
    assert not any(path.endswith("/endpoints") for path in paths)
