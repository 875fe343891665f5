"""Services of a branch that the local control plane does not have."""

import pytest

from tests.local.client import Client


@pytest.mark.parametrize(
    ("path", "service"), [("auth", "Neon Auth"), ("data-api/neondb", "the Data API")]
)
async def test_service_is_not_enabled(
    api: Client, branch_path: str, path: str, service: str
) -> None:
    await api.expect_error(404, f"{service} is not enabled", "GET", f"{branch_path}/{path}")


async def test_data_api_of_a_missing_database_is_404(api: Client, branch_path: str) -> None:
    path = f"{branch_path}/data-api/shop"
    await api.expect_error(404, "database 'shop' not found", "GET", path)


@pytest.mark.parametrize("path", ["auth", "data-api/neondb"])
async def test_service_of_a_missing_branch_is_404(api: Client, project_id: str, path: str) -> None:
    missing = f"/projects/{project_id}/branches/br-none/{path}"
    await api.expect_error(404, "branch 'br-none' not found", "GET", missing)
