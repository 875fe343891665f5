"""The regions of projects."""

from tests.local.client import Client


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
