"""Rate limits (429) and locks (423), as Neon publishes them."""

from email.utils import parsedate_to_datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.tests.client import Client, Reply
from neonctl_local import LocalControlPlane, ManualClock, RateLimits
from neonctl_local.server.limits import LimitWindow


async def burst(api: Client, count: int, path: str = "/projects") -> list[int]:
    """Return the statuses of a number of requests."""
    return [(await api.send("GET", path)).status for _ in range(count)]


async def refused(api: Client, path: str = "/projects") -> Reply:
    """Send a request that is rejected, and return its response."""
    reply = await api.send("GET", path)
    assert reply.status == 429
    assert "too many requests" in reply.message
    return reply


@pytest.mark.control_plane(rate_limits=True)
async def test_route_allows_40_requests_a_second(api: Client, clock: ManualClock) -> None:
    assert await burst(api, 40) == [200] * 40
    assert (await refused(api)).headers["Retry-After"] == "1"
    assert await burst(api, 1, "/users/me") == [200]
    clock.advance(0.999)
    await refused(api)
    clock.advance(0.001)
    assert await burst(api, 40) == [200] * 40


@pytest.mark.control_plane(rate_limits=True)
async def test_unknown_paths_share_one_limit(api: Client) -> None:
    statuses = [(await api.send("GET", f"/nowhere/{number}")).status for number in range(41)]
    assert statuses == [404] * 40 + [429]
    assert await burst(api, 1) == [200]


@pytest.mark.parametrize(
    "name", ["account_per_minute", "route_per_second", "organization_keys_per_second"]
)
def test_limit_allows_at_least_one_request(name: str) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        msgspec.convert({name: 0}, RateLimits)


@pytest.mark.control_plane(rate_limits=True)
async def test_account_may_send_700_requests_a_minute(api: Client, clock: ManualClock) -> None:
    for _ in range(20):
        await burst(api, 35)
        clock.advance(2)
    reply = await refused(api)
    assert reply.headers["Retry-After"] == "20"
    second = await api.control_plane.create_api_key("same account")
    assert (await api.send("GET", "/users/me", key=second)).status == 429
    clock.advance(20)
    assert await burst(api, 35) == [200] * 35
    await refused(api)


@pytest.mark.control_plane(rate_limits=True)
async def test_organization_may_create_10_keys_a_second(api: Client) -> None:
    path = f"{api.organization_path}/api_keys"
    body = {"key_name": "k"}
    statuses = [(await api.send("POST", path, body)).status for _ in range(11)]
    assert statuses == [200] * 10 + [429]
    assert len(await api.get(path)) == 10


@pytest.mark.control_plane(rate_limits=RateLimits(account_per_minute=2))
async def test_accounts_do_not_share_their_limits(api: Client) -> None:
    user_id = await api.control_plane.create_user("Other", "other@example.com")
    other = await api.control_plane.create_api_key("theirs", user_id=user_id)
    assert await burst(api, 3) == [200, 200, 429]
    assert (await api.send("GET", "/projects", key=other)).status == 200


@pytest.mark.control_plane(rate_limits=RateLimits(account_per_minute=1, retry_after="date"))
async def test_retry_after_may_be_a_date(api: Client, clock: ManualClock) -> None:
    clock.advance(0.5)
    await burst(api, 1)
    retry_after = (await refused(api)).headers["Retry-After"]
    assert retry_after == "Thu, 01 Jan 2026 00:01:01 GMT"
    clock.advance((parsedate_to_datetime(retry_after) - clock()).total_seconds())
    assert await burst(api, 1) == [200]


@pytest.mark.control_plane(rate_limits=RateLimits(account_per_minute=1, retry_after="none"))
async def test_retry_after_may_be_left_out(api: Client) -> None:
    await burst(api, 1)
    assert "Retry-After" not in (await refused(api)).headers


async def test_no_request_is_rejected_without_limits(api: Client) -> None:
    assert set(await burst(api, 60)) == {200}


@given(
    st.integers(min_value=1, max_value=5),
    st.lists(st.integers(min_value=0, max_value=30), max_size=60),
)
def test_no_window_exceeds_its_limit(limit: int, gaps: list[int]) -> None:
    window, now = LimitWindow(limit, 50), 0
    passed: list[int] = []
    for gap in gaps:
        now += gap
        if window.opens_at(now) == now:
            window.count(now)
            passed.append(now)
        else:
            # A rejected request would have exceeded the limit.
            assert sum(now - 50 < moment <= now for moment in passed) == limit
    for start in passed:
        assert sum(start <= moment < start + 50 for moment in passed) <= limit


@pytest.mark.control_plane(lock="branch")
async def test_running_operations_lock_their_branch(api: Client, clock: ManualClock) -> None:
    made = await api.project()
    project_id, main = made["project"]["id"], made["branch"]["id"]
    path = f"/projects/{project_id}/branches"
    await api.expect_error(423, "create_timeline", "POST", path, {})
    assert await api.get(f"{path}/count") == {"count": 1}
    clock.advance(2)
    one, two = (await api.branch(project_id), await api.branch(project_id))
    ids = [created["branch"]["id"] for created in (one, two)]
    assert (await api.send("DELETE", f"{path}/{ids[0]}")).status == 423
    role = {"role": {"name": "alex"}}
    assert (await api.send("POST", f"{path}/{ids[1]}/roles", role)).status == 423
    assert (await api.send("POST", f"{path}/{main}/roles", role)).status == 201
    clock.advance(1)
    assert (await api.send("DELETE", f"{path}/{ids[0]}")).status == 200


@pytest.mark.control_plane(lock="project")
async def test_running_operations_lock_their_project(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    other = (await api.project())["project"]["id"]
    clock.advance(2)
    await api.branch(project_id)
    before = await api.operations(project_id)
    for method, path in (
        ("POST", f"/projects/{project_id}/branches"),
        ("DELETE", f"/projects/{project_id}"),
        ("POST", f"/projects/{project_id}/endpoints/{before[1]['endpoint_id']}/suspend"),
    ):
        assert (await api.send(method, path)).status == 423
    assert await api.operations(project_id) == before
    await api.branch(other)
    clock.advance(1)
    await api.branch(project_id)


@pytest.mark.fact("operations-4")
async def test_running_operations_lock_their_project_by_default() -> None:
    async with LocalControlPlane() as control_plane, Client(control_plane) as api:
        path = f"/projects/{(await api.project())['project']['id']}/branches"
        text = "project already has running conflicting operations, scheduling of new ones is "
        await api.expect_error(
            423, text + "prohibited: the first is create_timeline", "POST", path, {}
        )


@pytest.mark.control_plane(lock="project")
async def test_reading_and_renaming_are_never_locked(api: Client) -> None:
    made = await api.project()
    path = f"/projects/{made['project']['id']}"
    assert (await api.send("GET", path)).status == 200
    branch = f"{path}/branches/{made['branch']['id']}"
    assert (await api.send("PATCH", branch, {"branch": {"name": "trunk"}})).status == 200


@pytest.mark.control_plane(lock="project")
async def test_reattachment_locks_the_request_that_caused_it_while_it_runs(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(30 * 86400)
    path = f"/projects/{project_id}/branches"
    await api.expect_error(423, "tenant_reattach", "POST", path, {})
    clock.advance(1)
    assert (await api.send("POST", path, {})).status == 201


@pytest.mark.parametrize("retry_after", [None, 5.0])
@pytest.mark.control_plane(lock="project")
async def test_lock_ends_when_its_operations_have_settled(
    api: Client, clock: ManualClock, project_id: str, retry_after: float | None
) -> None:
    clock.advance(2)
    await api.control_plane.fail_next("create_branch", retry_after=retry_after)
    await api.branch(project_id)
    clock.advance(2)
    reply = await api.send("POST", f"/projects/{project_id}/branches", {})
    assert reply.status == (201 if retry_after is None else 423)


@pytest.mark.control_plane(lock="project")
async def test_request_that_starts_no_operations_is_never_locked(
    api: Client, project_id: str
) -> None:
    path = f"/projects/{project_id}"
    renaming = {"project": {"name": "renamed"}}
    assert (await api.send("PATCH", path, renaming)).status == 200
    retention = {"project": {"history_retention_seconds": 3600}}
    assert (await api.send("PATCH", path, retention)).status == 423
