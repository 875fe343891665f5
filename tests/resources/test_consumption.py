from datetime import UTC, datetime, timedelta, timezone

import pytest

from neonctl_async import NeonClient, Paginator
from neonctl_async.types import BranchMetrics, ProjectConsumption, ProjectMetrics
from tests.models.records import BRANCH_METRICS, PROJECT_CONSUMPTION, JsonObject, decode
from tests.resources.wire import Asked, Call, answering_in_turn, check

PATH = "/consumption_history"
NEW_YEAR = datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
FEBRUARY = datetime(2026, 2, 1, tzinfo=UTC)
WHEN: dict[str, str | list[str]] = {
    "from": "2026-01-01T00:00:00+00:00",
    "to": "2026-02-01T00:00:00+00:00",
    "granularity": "daily",
}


def branches(neon: NeonClient) -> Paginator[BranchMetrics]:
    """A listing with all that it requires."""
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
        asks=Asked("GET", f"{PATH}/projects", WHEN, None),
        shown={"projects": [PROJECT_CONSUMPTION]},
        gives=[decode(ProjectConsumption, PROJECT_CONSUMPTION)],
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
        asks=Asked(
            "GET",
            f"{PATH}/projects",
            {
                **WHEN,
                "limit": "100",
                "project_ids": ["p-1", "p-2"],
                "org_id": "org-1",
                "metrics": ["written_data_bytes", "logical_size_bytes"],
            },
            None,
        ),
        shown={"projects": []},
        gives=[],
    ),
    Call(
        lambda neon: neon.consumption.projects_v2(
            org_id="org-1",
            from_=NEW_YEAR,
            to=FEBRUARY,
            granularity="daily",
            metrics=["compute_unit_seconds"],
        ).collect(),
        asks=Asked(
            "GET",
            f"{PATH}/v2/projects",
            {**WHEN, "org_id": "org-1", "metrics": "compute_unit_seconds"},
            None,
        ),
        shown={"projects": [PROJECT_CONSUMPTION]},
        gives=[decode(ProjectMetrics, PROJECT_CONSUMPTION)],
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
        asks=Asked(
            "GET",
            f"{PATH}/v2/projects",
            {
                **WHEN,
                "org_id": "org-1",
                "metrics": ["compute_unit_seconds", "extra_branches_month"],
                "limit": "1",
                "project_ids": ["p-1", "p-2"],
            },
            None,
        ),
        shown={"projects": []},
        gives=[],
    ),
    Call(
        lambda neon: branches(neon).collect(),
        asks=Asked(
            "GET",
            f"{PATH}/v2/branches",
            {**WHEN, "org_id": "org-1", "project_ids": "p-1", "metrics": "compute_unit_seconds"},
            None,
        ),
        shown={"branches": [BRANCH_METRICS]},
        gives=[decode(BranchMetrics, BRANCH_METRICS)],
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
        asks=Asked(
            "GET",
            f"{PATH}/v2/branches",
            {
                **WHEN,
                "org_id": "org-1",
                "project_ids": ["p-1", "p-2"],
                "metrics": ["compute_unit_seconds", "root_branch_bytes_month"],
                "limit": "1000",
                "branch_ids": ["br-1", "br-2"],
            },
            None,
        ),
        shown={"branches": []},
        gives=[],
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_what_it_asks_and_gives(call: Call) -> None:
    await check(call)


async def test_branches_go_on_by_cursor_with_the_same_question_and_none_comes_twice() -> None:
    records: list[JsonObject] = [
        {"project_id": project_id, "branch_id": branch_id, "periods": []}
        for project_id, branch_id in [("p-1", "br-1"), ("p-1", "br-2"), ("p-2", "br-1")]
    ]
    async with answering_in_turn(
        {"branches": records[:2], "pagination": {"cursor": "p-1+br/2"}},
        {"branches": records[1:], "pagination": None},
    ) as exchange:
        found = await branches(exchange.neon).collect()
    assert [(one.project_id, one.branch_id) for one in found] == [
        ("p-1", "br-1"),
        ("p-1", "br-2"),
        ("p-2", "br-1"),
    ]
    begin, further = (asked.query for asked in exchange.all_asked)
    assert further == {**begin, "cursor": "p-1+br/2"}
