"""The decision about each tenant of an existing project."""

from datetime import timedelta
from typing import Any

import pytest

from neonctl_async.provisioning.fleet import Tenant
from neonctl_async.provisioning.fleet.planning import Job, ProjectContent, ProjectPlan
from neonctl_async.types import Branch, Endpoint
from tests.provisioning.fleet.records import MAIN, NOW, PROJECT_ID, branch, compute, project, tenant


def plan(tenants: list[Tenant], branches: list[Branch], computes: list[Endpoint]) -> ProjectPlan:
    content = ProjectContent(project=project(), branches=[MAIN, *branches], endpoints=computes)
    return ProjectPlan(content, tenants, NOW)


def decide(wanted: Tenant, branches: list[Branch], computes: list[Endpoint]) -> Job:
    return plan([wanted], branches, computes).decide(wanted)


def test_missing_branch_is_created() -> None:
    job = decide(tenant(), [branch("b-10")], [])
    assert (job.planned.action, job.planned.project_id) == ("create", PROJECT_ID)
    assert (job.planned.branch, job.planned.is_ready) == (None, False)


def test_existing_branch_with_the_requested_settings_is_adopted() -> None:
    expires_at = NOW + timedelta(days=1)
    wanted = tenant(max_cu=2, protected=True, expires_at=expires_at, region="aws-us-east-2")
    existing = branch(protected=True, expires_at=expires_at)
    job = decide(wanted, [existing], [compute("b-2"), compute(autoscaling_limit_max_cu=2)])
    assert (job.planned.action, job.planned.differences) == ("adopt", ())
    assert (job.planned.branch, job.endpoint_id) == (existing, "ep-b-1")
    assert job.planned.is_ready


@pytest.mark.parametrize("parent", ["b-0", "br-b-0"])
def test_parent_is_compared_by_name_and_by_id(parent: str) -> None:
    branches = [branch("b-0"), branch("b-1", parent_id="br-b-0")]
    job = decide(tenant(parent=parent), branches, [compute()])
    assert (job.planned.action, job.parent_id) == ("adopt", "br-b-0")


@pytest.mark.parametrize(
    ("fields", "difference"),
    [
        ({"init_source": "schema-only"}, "init_source is not set instead of 'schema-only'"),
        ({"parent": "b-0"}, "its parent is 'main' (br-main) instead of 'b-0' (br-b-0)"),
        ({"parent": "b-9"}, "its parent cannot be 'b-9', which does not exist yet"),
        (
            {"region": "aws-eu-central-1"},
            "the region of its project is 'aws-us-east-2' instead of 'aws-eu-central-1'",
        ),
        ({"pg_version": 16}, "its project has Postgres 17 instead of 16"),
    ],
)
def test_different_setting_is_reported(fields: dict[str, Any], difference: str) -> None:
    branches = [branch("b-0"), branch()]
    job = decide(tenant(**fields), branches, [compute(autoscaling_limit_max_cu=2)])
    assert (job.planned.action, job.planned.differences) == ("differ", (difference,))


@pytest.mark.parametrize(
    ("fields", "setting", "difference"),
    [
        (
            {"max_cu": 4},
            "autoscaling_limit_max_cu",
            "max_cu is 2.0 instead of 4 (compute ep-b-1)",
        ),
        (
            {"suspend_timeout_seconds": 60},
            "suspend_timeout_seconds",
            "suspend_timeout_seconds is 0 instead of 60 (compute ep-b-1)",
        ),
        ({"protected": True}, "protected", "protected is False instead of True"),
        (
            {"expires_at": NOW},
            "expires_at",
            "it never expires instead of at 2027-01-01T00:00:00+00:00",
        ),
    ],
)
def test_setting_that_can_be_changed_in_place_is_an_update(
    fields: dict[str, Any], setting: str, difference: str
) -> None:
    existing = compute(autoscaling_limit_max_cu=2, suspend_timeout_seconds=0)
    job = decide(tenant(**fields), [branch()], [existing])
    assert (job.planned.action, job.planned.differences) == ("update", (difference,))
    assert {**job.changes.branch, **job.changes.compute} == {setting: difference}
    assert job.endpoint_id == "ep-b-1"


def test_tenant_with_one_fixed_difference_is_not_updated() -> None:
    job = decide(tenant(protected=True, pg_version=16), [branch()], [compute()])
    assert job.planned.action == "differ"
    assert job.planned.differences == (
        "its project has Postgres 17 instead of 16",
        "protected is False instead of True",
    )


def test_branch_that_expires_too_early_differs() -> None:
    wanted = tenant(expires_at=NOW + timedelta(days=10))
    job = decide(wanted, [branch(expires_at=NOW + timedelta(days=1))], [compute()])
    assert job.planned.action == "update"
    assert job.planned.differences == (
        "it expires at 2027-01-02 00:00:00 UTC instead of 2027-01-11 00:00:00 UTC",
    )


def test_branch_without_a_compute_differs_unless_none_is_wanted() -> None:
    reader = compute(type="read_only")
    assert decide(tenant(), [branch()], [reader]).planned.differences == (
        "it has no read_write compute",
    )
    assert decide(tenant(compute=False), [branch()], [reader]).planned.action == "adopt"


def test_default_branch_differs() -> None:
    job = decide(tenant("main"), [], [compute("main")])
    assert "it is the default branch of the project" in job.planned.differences


@pytest.mark.parametrize(
    ("of_branch", "of_compute", "is_ready"),
    [
        ({}, {}, True),
        ({"current_state": "archived"}, {"current_state": "active"}, True),
        ({"current_state": "init"}, {}, False),
        ({"pending_state": "archived"}, {}, False),
        ({}, {"current_state": "init", "pending_state": "active"}, False),
        ({}, {"started_at": None}, False),
    ],
)
def test_branch_is_ready_when_it_and_its_compute_are_created(
    of_branch: dict[str, str], of_compute: dict[str, str], *, is_ready: bool
) -> None:
    job = decide(tenant(), [branch(**of_branch)], [compute(**of_compute)])
    assert (job.planned.action, job.planned.is_ready) == ("adopt", is_ready)
    without = decide(tenant(compute=False), [branch(**of_branch)], [compute(**of_compute)])
    assert without.planned.is_ready == (not of_branch or of_branch == {"current_state": "archived"})


def test_extra_branches_belong_to_no_tenant() -> None:
    branches = [branch(name) for name in ("b-1", "foreign", "by-name", "by-id")]
    tenants = [tenant(), tenant("b-2", parent="by-name"), tenant("b-3", parent="br-by-id")]
    assert [one.name for one in plan(tenants, branches, []).extra()] == ["foreign"]


def test_missing_parent_is_a_problem_unless_it_is_a_tenant() -> None:
    tenants = [tenant("b-1", parent="b-2"), tenant("b-2", parent="main"), tenant("b-3", parent="x")]
    [problem] = plan(tenants, [], []).problems()
    assert problem == (
        "the parent of acme/b-3 is 'x': expected the name or id of a branch of project "
        f"{PROJECT_ID}"
    )
