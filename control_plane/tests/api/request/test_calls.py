"""Query parameters, and times in request bodies."""

import pytest

from control_plane.tests.client import Client


@pytest.mark.parametrize(
    "query",
    [
        *("limit=0", "limit=10001", "limit=1_0", "limit=%EF%BC%91", "limit=%2B5"),
        *("sort_by=size", "sort_order=up", "cursor=x", "cursor=e30="),
    ],
)
async def test_error_for_an_invalid_query_parameter_names_it(
    api: Client, project_id: str, query: str
) -> None:
    await api.expect_error(
        400, query.partition("=")[0], "GET", f"/projects/{project_id}/branches?{query}"
    )


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
async def test_time_outside_the_years_1_to_9999_is_400(
    api: Client, project_id: str, moment: str
) -> None:
    branch_id = (await api.branch(project_id))["branch"]["id"]
    path = f"/projects/{project_id}/branches/{branch_id}/restore"
    body = {"source_branch_id": branch_id, "source_timestamp": moment, "preserve_under_name": "k"}
    await api.expect_error(400, "source_timestamp", "POST", path, body)
