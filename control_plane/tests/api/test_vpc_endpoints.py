"""VPC endpoints of an organization, and the projects that are restricted to them."""

import pytest

from control_plane.tests.client import Client
from control_plane.tests.keys import member_key

REGION = "aws-us-east-2"


def region_path(api: Client, region: str = REGION) -> str:
    """Return the path of the VPC endpoints of the first organization in a region."""
    return f"{api.organization_path}/vpc/region/{region}/vpc_endpoints"


async def send_ok(api: Client, method: str, path: str, label: str | None = None) -> None:
    """Send a request, and check that the response is 200 without a body."""
    reply = await api.send(method, path, None if label is None else {"label": label})
    assert (reply.status, reply.content) == (200, b"")


async def restricted(api: Client, project_id: str) -> dict[str, str]:
    """Return the VPC endpoints that a project is restricted to, with their labels."""
    listed = await api.get(f"/projects/{project_id}/vpc_endpoints")
    return {found["vpc_endpoint_id"]: found["label"] for found in listed["endpoints"]}


async def test_endpoints_are_assigned_labelled_and_listed_by_region(api: Client) -> None:
    await send_ok(api, "POST", f"{region_path(api)}/vpce-1", "first")
    await send_ok(api, "POST", f"{region_path(api)}/vpce-1", "renamed")
    await send_ok(api, "POST", f"{region_path(api, 'aws-eu-central-1')}/vpce-2", "second")
    first = {"vpc_endpoint_id": "vpce-1", "label": "renamed"}
    second = {"vpc_endpoint_id": "vpce-2", "label": "second"}
    assert await api.get(region_path(api)) == {"endpoints": [first]}
    assert await api.get(f"{api.organization_path}/vpc/vpc_endpoints") == {
        "endpoints": [first | {"region_id": REGION}, second | {"region_id": "aws-eu-central-1"}]
    }


async def test_project_is_restricted_to_endpoints_of_its_organization(
    api: Client, project_id: str
) -> None:
    path = f"/projects/{project_id}/vpc_endpoints/vpce-1"
    await send_ok(api, "POST", f"{region_path(api, 'aws-eu-central-1')}/vpce-1", "other region")
    await api.expect_error(422, "assign it there first", "POST", path, {"label": "shop"})
    await send_ok(api, "POST", f"{region_path(api)}/vpce-1", "first")
    await send_ok(api, "POST", path, "shop")
    await send_ok(api, "POST", path, "shop again")
    assert await restricted(api, project_id) == {"vpce-1": "shop again"}
    await send_ok(api, "DELETE", path)
    assert await restricted(api, project_id) == {}
    assert (await api.send("DELETE", path)).status == 404


async def test_endpoint_lists_the_projects_restricted_to_it(api: Client) -> None:
    path = f"{region_path(api)}/vpce-1"
    await send_ok(api, "POST", path, "first")
    created = [(await api.project())["project"]["id"] for _ in range(4)]
    for project_id in created:
        await send_ok(api, "POST", f"/projects/{project_id}/vpc_endpoints/vpce-1", "it")
    assert await api.get(path) == {
        "vpc_endpoint_id": "vpce-1",
        "label": "first",
        "state": "accepted",
        "num_restricted_projects": 4,
        "example_restricted_projects": created[:3],
    }


@pytest.mark.fact("vpc-1")
async def test_deleted_endpoint_restricts_no_project_and_cannot_be_added_again(
    api: Client, project_id: str
) -> None:
    path = f"{region_path(api)}/vpce-1"
    await send_ok(api, "POST", path, "first")
    await send_ok(api, "POST", f"/projects/{project_id}/vpc_endpoints/vpce-1", "it")
    await send_ok(api, "DELETE", path)
    assert await restricted(api, project_id) == {}
    assert await api.get(region_path(api)) == {"endpoints": []}
    for method in ("GET", "DELETE"):
        assert (await api.send(method, path)).status == 404
    await api.expect_error(422, "cannot be added again", "POST", path, {"label": "again"})


async def test_deleting_an_endpoint_affects_deleted_projects_but_no_other_region(
    api: Client, project_id: str
) -> None:
    other_id = (await api.project(region_id="aws-eu-central-1"))["project"]["id"]
    for region, project in ((REGION, project_id), ("aws-eu-central-1", other_id)):
        await send_ok(api, "POST", f"{region_path(api, region)}/vpce-1", "first")
        await send_ok(api, "POST", f"/projects/{project}/vpc_endpoints/vpce-1", "it")
    await api.request("DELETE", f"/projects/{project_id}")
    await send_ok(api, "DELETE", f"{region_path(api)}/vpce-1")
    await api.request("POST", f"/projects/{project_id}/recover")
    assert await restricted(api, project_id) == {}
    assert await restricted(api, other_id) == {"vpce-1": "it"}


async def test_project_that_leaves_its_organization_loses_its_restrictions(
    api: Client, project_id: str
) -> None:
    await send_ok(api, "POST", f"{region_path(api)}/vpce-1", "first")
    await send_ok(api, "POST", f"/projects/{project_id}/vpc_endpoints/vpce-1", "it")
    await api.move_to_new_organization(project_id)
    assert await restricted(api, project_id) == {}


@pytest.mark.parametrize(("method", "body"), [("POST", {"label": "x"}), ("DELETE", None)])
async def test_changing_endpoints_of_an_organization_requires_an_administrator(
    api: Client, method: str, body: object
) -> None:
    _, user_key = await member_key(api)
    path = f"{region_path(api)}/vpce-1"
    assert (await api.send(method, path, body, key=user_key)).status == 403
    assert await api.get(region_path(api), key=user_key) == {"endpoints": []}


async def test_azure_has_no_vpc_endpoints(api: Client) -> None:
    path = f"{region_path(api, 'azure-eastus2')}/vpce-1"
    await api.expect_error(422, "Azure", "POST", path, {"label": "x"})


async def test_label_is_required(api: Client, project_id: str) -> None:
    for path in (f"{region_path(api)}/vpce-1", f"/projects/{project_id}/vpc_endpoints/vpce-1"):
        await api.expect_error(400, "label (field required)", "POST", path, {})
