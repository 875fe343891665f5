from datetime import UTC, datetime, timedelta, timezone

import pytest

from neonctl_async import NeonClient, Paginator
from neonctl_async.types import BranchMetrics, ProjectConsumption, ProjectMetrics
from tests.models.records import BRANCH_METRICS, PROJECT_CONSUMPTION, JsonObject, decode
from tests.resources.wire import Call, SentRequest, check_call, responding_in_sequence

PATH = "/consumption_history"
NEW_YEAR = datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
FEBRUARY = datetime(2026, 2, 1, tzinfo=UTC)
PERIOD: dict[str, str | list[str]] = {
    "from": "2026-01-01T00:00:00+00:00",
    "to": "2026-02-01T00:00:00+00:00",
    "granularity": "daily",
}


def branches(neon: NeonClient) -> Paginator[BranchMetrics]:
    """List with the required parameters only."""
    return neon.consumption.branches_v2(
        org_id="org-1",
        project_ids=["p-1"],
        from_=NEW_YEAR,
        to=FEBRUARY,
        granularity="daily",
        metrics=["compute_unit_seconds"],
    )


CALLS = [
    Call(
        lambda neon: neon.consumption.projects(
            from_=NEW_YEAR, to=FEBRUARY, granularity="daily"
        ).collect(),
        sends=SentRequest("GET", f"{PATH}/projects", PERIOD, None),
        response={"projects": [PROJECT_CONSUMPTION]},
        returns=[decode(ProjectConsumption, PROJECT_CONSUMPTION)],
    ),
    Call(
        lambda neon: neon.consumption.projects(
            from_=NEW_YEAR,
            to=FEBRUARY,
            granularity="daily",
            limit=100,
            project_ids=("p-1", "p-2"),
            org_id="org-1",
            metrics=["written_data_bytes", "logical_size_bytes"],
        ).collect(),
        sends=SentRequest(
            "GET",
            f"{PATH}/projects",
            {
                **PERIOD,
                "limit": "100",
                "project_ids": ["p-1", "p-2"],
                "org_id": "org-1",
                "metrics": ["written_data_bytes", "logical_size_bytes"],
            },
            None,
        ),
        response={"projects": []},
        returns=[],
    ),
    Call(
        lambda neon: neon.consumption.projects_v2(
            org_id="org-1",
            from_=NEW_YEAR,
            to=FEBRUARY,
            granularity="daily",
            metrics=["compute_unit_seconds"],
        ).collect(),
        sends=SentRequest(
            "GET",
            f"{PATH}/v2/projects",
            {**PERIOD, "org_id": "org-1", "metrics": "compute_unit_seconds"},
            None,
        ),
        response={"projects": [PROJECT_CONSUMPTION]},
        returns=[decode(ProjectMetrics, PROJECT_CONSUMPTION)],
    ),
    Call(
        lambda neon: neon.consumption.projects_v2(
            org_id="org-1",
            from_=NEW_YEAR,
            to=FEBRUARY,
            granularity="daily",
            metrics=["compute_unit_seconds", "extra_branches_month"],
            limit=1,
            project_ids=["p-1", "p-2"],
        ).collect(),
        sends=SentRequest(
            "GET",
            f"{PATH}/v2/projects",
            {
                **PERIOD,
                "org_id": "org-1",
                "metrics": ["compute_unit_seconds", "extra_branches_month"],
                "limit": "1",
                "project_ids": ["p-1", "p-2"],
            },
            None,
        ),
        response={"projects": []},
        returns=[],
    ),
    Call(
        lambda neon: branches(neon).collect(),
        sends=SentRequest(
            "GET",
            f"{PATH}/v2/branches",
            {**PERIOD, "org_id": "org-1", "project_ids": "p-1", "metrics": "compute_unit_seconds"},
            None,
        ),
        response={"branches": [BRANCH_METRICS]},
        returns=[decode(BranchMetrics, BRANCH_METRICS)],
    ),
    Call(
        lambda neon: neon.consumption.branches_v2(
            org_id="org-1",
            project_ids=["p-1", "p-2"],
            from_=NEW_YEAR,
            to=FEBRUARY,
            granularity="daily",
            metrics=["compute_unit_seconds", "root_branch_bytes_month"],
            limit=1000,
            branch_ids=("br-1", "br-2"),
        ).collect(),
        sends=SentRequest(
            "GET",
            f"{PATH}/v2/branches",
            {
                **PERIOD,
                "org_id": "org-1",
                "project_ids": ["p-1", "p-2"],
                "metrics": ["compute_unit_seconds", "root_branch_bytes_month"],
                "limit": "1000",
                "branch_ids": ["br-1", "br-2"],
            },
            None,
        ),
        response={"branches": []},
        returns=[],
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await check_call(call)


async def test_next_page_repeats_the_query_and_duplicates_are_skipped() -> None:
    records: list[JsonObject] = [
        {"project_id": project_id, "branch_id": branch_id, "periods": []}
        for project_id, branch_id in [("p-1", "br-1"), ("p-1", "br-2"), ("p-2", "br-1")]
    ]
    async with responding_in_sequence(
        {"branches": records[:2], "pagination": {"cursor": "p-1+br/2"}},
        {"branches": records[1:], "pagination": None},
    ) as exchange:
        found = await branches(exchange.neon).collect()
    assert [(record.project_id, record.branch_id) for record in found] == [
        ("p-1", "br-1"),
        ("p-1", "br-2"),
        ("p-2", "br-1"),
    ]
    first, second = (request.query for request in exchange.all_sent)
    assert second == {**first, "cursor": "p-1+br/2"}
