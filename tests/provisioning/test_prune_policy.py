"""The criteria of a policy, and the reasons for branches that do not meet them."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from neonctl_async.provisioning.prune_policy import PrunePolicy, duration_text, last_activity
from neonctl_async.types import Branch, Endpoint, EndpointState, EndpointType
from tests.support.records import EPOCH, PROJECT

NOW = EPOCH + timedelta(days=100)


def branch(name: str = "preview/pr-1", *, created: float = 50, **more: Any) -> Branch:
    """Return a branch that was created and last changed ``created`` days after EPOCH."""
    at = EPOCH + timedelta(days=created)
    settings: dict[str, Any] = {"parent_id": "br-main", "created_at": at, "updated_at": at} | more
    return Branch(id="br-1", project_id=PROJECT, name=name, current_state="ready", **settings)


def compute(
    state: EndpointState = EndpointState.IDLE,
    *,
    last_active: datetime | None = None,
    **more: Any,
) -> Endpoint:
    return Endpoint(
        id="ep-1",
        project_id=PROJECT,
        branch_id="br-1",
        host="ep-1.example",
        type=EndpointType.READ_WRITE,
        current_state=state,
        created_at=EPOCH,
        updated_at=EPOCH,
        last_active=last_active,
        **more,
    )


def selects(policy: PrunePolicy, branch: Branch, *computes: Endpoint) -> bool:
    return policy.judge(branch, computes, NOW).is_selected


@pytest.mark.parametrize(
    ("criteria", "matching", "other"),
    [
        ({"name_prefix": "preview/"}, "preview/pr-1", "Preview/pr-1"),
        ({"pattern": "preview/pr-*"}, "preview/pr-1/a", "my-preview/pr-1"),
        ({"pattern": "pr-[0-9]?"}, "pr-12", "pr-1"),
        ({"names": ["a", "b"]}, "b", "ab"),
        ({"names": {"a", "b"}}, "b", "ab"),
        ({"name_prefix": "a", "pattern": "*c", "names": ["abc", "ac", "b"]}, "ac", "b"),
    ],
)
def test_name_must_match_every_criterion(
    criteria: dict[str, Any], matching: str, other: str
) -> None:
    policy = PrunePolicy(**criteria)
    assert selects(policy, branch(matching))
    judgement = policy.judge(branch(other), (), NOW)
    assert not judgement.is_selected
    assert not judgement.is_related
    assert judgement.reason.startswith("its name ")


def test_branch_must_be_older_than_the_limit() -> None:
    policy = PrunePolicy(older_than=timedelta(days=50))
    assert selects(policy, branch(created=49.9))
    assert not selects(policy, branch(created=50))
    assert policy.judge(branch(created=98), (), NOW).reason == (
        "it was created 2 days ago, less than 50 days"
    )
    assert not selects(policy, branch(created=101)), "its timestamp is in the future"


@pytest.mark.parametrize(
    ("used", "reason"),
    [
        ({"created_at": NOW - timedelta(hours=1)}, "it was created 1 hour ago"),
        ({"updated_at": NOW - timedelta(hours=1)}, "it was changed 1 hour ago"),
        ({"last_reset_at": NOW - timedelta(hours=1)}, "it was reset 1 hour ago"),
    ],
)
def test_created_changed_or_reset_branch_is_not_idle(used: dict[str, Any], reason: str) -> None:
    policy = PrunePolicy(idle_for=timedelta(hours=2))
    assert selects(policy, branch())
    assert policy.judge(branch(**used), (), NOW).reason == f"{reason}, less than 2 hours"


def test_branch_is_idle_as_long_as_all_of_its_computes() -> None:
    policy = PrunePolicy(idle_for=timedelta(hours=2))
    before, after = NOW - timedelta(hours=3), NOW - timedelta(hours=1)
    assert selects(policy, branch(), compute(), compute(last_active=before))
    judgement = policy.judge(branch(), [compute(last_active=after), compute()], NOW)
    assert judgement.reason == "a compute was active 1 hour ago, less than 2 hours"


@pytest.mark.parametrize(
    "running",
    [
        compute(EndpointState.ACTIVE),
        compute(EndpointState.INIT),
        compute(EndpointState("migrating")),
        compute(pending_state=EndpointState.ACTIVE),
    ],
    ids=lambda running: f"{running.current_state}-{running.pending_state}",
)
def test_branch_with_a_running_compute_is_never_idle(running: Endpoint) -> None:
    judgement = PrunePolicy(idle_for=timedelta(hours=2)).judge(branch(), [running], NOW)
    assert judgement.reason == "a compute is running"
    assert not judgement.is_selected


def test_start_of_a_compute_counts_only_without_a_last_activity() -> None:
    started = NOW - timedelta(hours=1)
    assert last_activity(branch(), [compute(started_at=started)], NOW).at == started
    active = NOW - timedelta(days=5)
    checked = compute(started_at=started, last_active=active)
    assert last_activity(branch(), [checked], NOW).at == active


def test_all_unmet_criteria_are_reported() -> None:
    policy = PrunePolicy(
        name_prefix="preview/", older_than=timedelta(days=7), idle_for=timedelta(days=3)
    )
    judgement = policy.judge(branch(created=99, updated_at=NOW), (), NOW)
    assert judgement.is_related
    assert judgement.reason == (
        "it was created 1 day ago, less than 7 days, "
        "and it was changed 0 seconds ago, less than 3 days"
    )


def test_branch_that_meets_no_criterion_is_not_related() -> None:
    policy = PrunePolicy(older_than=timedelta(days=7), idle_for=timedelta(days=3))
    assert not policy.judge(branch(created=99), (), NOW).is_related
    changed = branch(updated_at=NOW)
    assert policy.judge(changed, (), NOW).is_related
    assert not selects(policy, changed)


def test_empty_list_of_names_selects_no_branch() -> None:
    assert not selects(PrunePolicy(names=[]), branch())


@pytest.mark.parametrize(
    ("criteria", "message"),
    [
        ({}, "prune has no criterion, so it would delete every branch: set at least one of name_"),
        ({"name_prefix": ""}, "name_prefix is empty"),
        ({"pattern": ""}, "pattern is empty"),
        ({"older_than": timedelta(0)}, "older_than is 0:00:00"),
        ({"idle_for": timedelta(days=-1)}, "idle_for is -1 day"),
    ],
)
def test_policy_that_would_select_every_branch_is_an_error(
    criteria: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        PrunePolicy(**criteria)


@pytest.mark.parametrize(
    ("criteria", "message"),
    [
        ({"names": "main"}, "names is 'main': expected a list of names"),
        ({"names": 7}, "names is 7: expected a list of names"),
        ({"names": [1]}, "names contains 1: expected a str"),
        ({"pattern": 1}, "pattern is 1: expected a str"),
        ({"older_than": 7}, "older_than is 7: expected a timedelta"),
    ],
)
def test_criterion_of_a_wrong_type_is_an_error(criteria: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=f"^{message}$"):
        PrunePolicy(**criteria)


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(0), "0 seconds"),
        (timedelta(seconds=1.5), "1 second"),
        (timedelta(seconds=60), "1 minute"),
        (timedelta(seconds=90), "90 seconds"),
        (timedelta(hours=36), "36 hours"),
        (timedelta(days=7), "7 days"),
        (timedelta(days=8, hours=5), "8 days"),
    ],
)
def test_duration_is_shown_in_one_unit(duration: timedelta, text: str) -> None:
    assert duration_text(duration) == text
