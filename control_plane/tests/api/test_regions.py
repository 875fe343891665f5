"""The regions of projects."""

import pytest

from control_plane.tests.client import Client


async def test_new_projects_are_in_the_default_region(api: Client) -> None:
    regions = (await api.get("/regions"))["regions"]
    (default,) = [region["region_id"] for region in regions if region["default"]]
    assert (await api.project())["project"]["region_id"] == default
    assert {"aws-eu-central-1", "azure-eastus2"} < {region["region_id"] for region in regions}


async def test_region_has_a_name_and_coordinates(api: Client) -> None:
    for region in (await api.get("/regions"))["regions"]:
        assert region["name"]
        assert abs(float(region["geo_lat"])) <= 90
        assert abs(float(region["geo_long"])) <= 180


async def test_organization_has_all_regions(api: Client) -> None:
    regions = await api.get("/regions")
    assert await api.get(f"/regions?org_id={api.control_plane.org_id}") == regions
    await api.expect_error(404, "org-none-1", "GET", "/regions?org_id=org-none-1")


async def test_project_in_an_unknown_region_is_400_and_lists_the_regions(api: Client) -> None:
    body = {"project": {"name": "rover", "region_id": "mars"}}
    error = "project.region_id: there is no region 'mars': use one of aws-us-east-1, aws-us-east-2"
    await api.expect_error(400, error, "POST", "/projects", body)
    assert (await api.get("/projects"))["projects"] == []


async def test_projects_can_be_created_in_every_region(api: Client) -> None:
    for region in (await api.get("/regions"))["regions"]:
        created = await api.project(region_id=region["region_id"])
        assert created["project"]["region_id"] == region["region_id"]


@pytest.mark.parametrize(("region", "status"), [("aws-us-east-2", 201), ("aws-eu-west-2", 400)])
async def test_compute_is_in_the_region_of_its_project(
    api: Client, region: str, status: int
) -> None:
    created = await api.project(region_id="aws-us-east-2")
    path = f"/projects/{created['project']['id']}/endpoints"
    branch = created["branch"]["id"]
    body = {"endpoint": {"branch_id": branch, "type": "read_only", "region_id": region}}
    reply = await api.send("POST", path, body)
    assert reply.status == status
    assert status == 201 or "use the region of the project, 'aws-us-east-2'" in reply.message


async def test_vpc_endpoint_in_an_unknown_region_is_400(api: Client) -> None:
    path = f"/organizations/{api.control_plane.org_id}/vpc/region/mars/vpc_endpoints/vpce-1"
    await api.expect_error(400, "region_id: there is no region 'mars'", "POST", path, {"label": ""})


async def test_unknown_provisioner_is_400(api: Client) -> None:
    body = {"project": {"provisioner": "horse"}}
    await api.expect_error(400, "project.provisioner (", "POST", "/projects", body)
