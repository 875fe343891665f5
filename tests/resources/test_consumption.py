from datetime import UTC, datetime, timedelta, timezone
from typing import TypedDict

import pytest

from neonctl_async import NeonClient, Paginator
from neonctl_async.types import BranchMetrics, Granularity, ProjectConsumption, ProjectMetrics
from tests.models.records import BRANCH_METRICS, PROJECT_CONSUMPTION, JsonObject
from tests.resources.wire import Call, Query, Response, records_in, responding_in_sequence

PATH = "/consumption_history"


class Period(TypedDict):
    """The parameters that all methods require."""

    from_: datetime
    to: datetime
    granularity: Granularity


JANUARY: Period = {
    "from_": datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
    "to": datetime(2026, 2, 1, tzinfo=UTC),
    "granularity": "daily",
}
SENT: Query = {
    "from": "2026-01-01T00:00:00+00:00",
    "to": "2026-02-01T00:00:00+00:00",
    "granularity": "daily",
}
NO_PROJECTS = Response({"projects": []}, [])
COMPUTE = ["compute_unit_seconds"]
PROJECTS = ["p-1", "p-2"]


def branches(neon: NeonClient) -> Paginator[BranchMetrics]:
    """List with the required parameters only."""
    return neon.consumption.branches_v2(
        org_id="org-1", project_ids=["p-1"], **JANUARY, metrics=COMPUTE
    )


CALLS = [
    Call(
        lambda neon: neon.consumption.projects(**JANUARY).collect(),
        f"GET {PATH}/projects",
        records_in("projects", ProjectConsumption, PROJECT_CONSUMPTION),
        query=SENT,
    ),
    Call(
        lambda neon: neon.consumption.projects(
            **JANUARY,
            limit=100,
            project_ids=tuple(PROJECTS),
            org_id="org-1",
            metrics=["written_data_bytes", "logical_size_bytes"],
        ).collect(),
        f"GET {PATH}/projects",
        NO_PROJECTS,
        query={
            **SENT,
            "limit": "100",
            "project_ids": PROJECTS,
            "org_id": "org-1",
            "metrics": ["written_data_bytes", "logical_size_bytes"],
        },
    ),
    Call(
        lambda neon: neon.consumption.projects_v2(
            org_id="org-1", **JANUARY, metrics=COMPUTE
        ).collect(),
        f"GET {PATH}/v2/projects",
        records_in("projects", ProjectMetrics, PROJECT_CONSUMPTION),
        query={**SENT, "org_id": "org-1", "metrics": "compute_unit_seconds"},
    ),
    Call(
        lambda neon: neon.consumption.projects_v2(
            org_id="org-1",
            **JANUARY,
            metrics=["compute_unit_seconds", "extra_branches_month"],
            limit=1,
            project_ids=PROJECTS,
        ).collect(),
        f"GET {PATH}/v2/projects",
        NO_PROJECTS,
        query={
            **SENT,
            "org_id": "org-1",
            "metrics": ["compute_unit_seconds", "extra_branches_month"],
            "limit": "1",
            "project_ids": PROJECTS,
        },
    ),
    Call(
        lambda neon: branches(neon).collect(),
        f"GET {PATH}/v2/branches",
        records_in("branches", BranchMetrics, BRANCH_METRICS),
        query={
            **SENT,
            "org_id": "org-1",
            "project_ids": "p-1",
            "metrics": "compute_unit_seconds",
        },
    ),
    Call(
        lambda neon: neon.consumption.branches_v2(
            org_id="org-1",
            project_ids=PROJECTS,
            **JANUARY,
            metrics=["compute_unit_seconds", "root_branch_bytes_month"],
            limit=1000,
            branch_ids=("br-1", "br-2"),
        ).collect(),
        f"GET {PATH}/v2/branches",
        Response({"branches": []}, []),
        query={
            **SENT,
            "org_id": "org-1",
            "project_ids": PROJECTS,
            "metrics": ["compute_unit_seconds", "root_branch_bytes_month"],
            "limit": "1000",
            "branch_ids": ["br-1", "br-2"],
        },
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()


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
