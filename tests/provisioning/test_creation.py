"""An object is created once, or adopted, whatever happens to the requests."""

import asyncio
from collections.abc import Callable

import pytest

from neonctl_async import (
    APIError,
    ClientClosedError,
    ConflictError,
    ConnectionLostError,
    MismatchError,
    NeonError,
    RequestTimeoutError,
    RetryPolicy,
    TransportError,
    WaitTimeoutError,
)
from neonctl_async.provisioning.creation import (
    adopt_or_create,
    may_exist_after,
    may_have_been_created,
)
from tests.support.clock import now

pytestmark = pytest.mark.virtual_time

DEFAULT = RetryPolicy()


def api_error(status: int, method: str = "POST") -> APIError:
    return APIError.for_status(status)(status=status, message="no", method=method, path="/projects")


def lost(kind: type[TransportError] = ConnectionLostError, method: str = "POST") -> TransportError:
    return kind("lost", method=method, path="/projects", request_id="1", maybe_delivered=True)


def failed_wait() -> WaitTimeoutError:
    error = WaitTimeoutError(timeout=1.0, settled=[], pending=[], last_error=None)
    error.maybe_delivered = True
    return error


class Api:
    """An API in which one object can exist, and which fails as planned."""

    def __init__(self, *failures: NeonError, exists: bool = False) -> None:
        self.exists = exists
        self.creations: list[float] = []
        self.searches: list[float] = []
        self.after_failure: Callable[[], None] = lambda: None
        self._failures = list(failures)

    async def adopt(self) -> str | None:
        self.searches.append(now())
        return "adopted" if self.exists else None

    async def create(self) -> str:
        self.creations.append(now())
        if self._failures:
            self.after_failure()
            raise self._failures.pop(0)
        self.exists = True
        return "created"

    async def run(self, policy: RetryPolicy = DEFAULT) -> str:
        return await adopt_or_create(self.adopt, self.create, policy)

    def appear(self) -> None:
        self.exists = True


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (lost(), True),
        (api_error(500), True),
        (ClientClosedError("closed", maybe_delivered=True), True),
        (ClientClosedError("closed"), False),
        (api_error(409), False),
        (lost(method="GET"), False),
        (failed_wait(), False),
        (ValueError("no request was sent"), False),
    ],
)
def test_only_a_creation_without_a_result_may_have_created(
    error: Exception, *, expected: bool
) -> None:
    assert may_have_been_created(error) == expected


def test_object_of_another_process_may_exist_after_a_conflict() -> None:
    assert may_exist_after(api_error(409))
    assert not may_exist_after(api_error(423))


async def test_existing_object_is_adopted_with_one_search() -> None:
    api = Api(exists=True)
    assert await api.run() == "adopted"
    assert (api.searches, api.creations) == ([0], [])


async def test_missing_object_is_created() -> None:
    api = Api()
    assert await api.run() == "created"
    assert (api.searches, api.creations) == ([0], [0])


@pytest.mark.parametrize("failure", [api_error(409), api_error(423), api_error(500), lost()])
async def test_object_that_exists_after_a_failure_is_adopted(failure: NeonError) -> None:
    api = Api(failure)
    api.after_failure = api.appear
    assert await api.run() == "adopted"
    assert len(api.creations) == 1


async def test_conflict_is_followed_by_a_search_at_once() -> None:
    api = Api(api_error(409))
    api.after_failure = api.appear
    await api.run()
    assert api.searches == [0, 0]


@pytest.mark.parametrize("failure", [api_error(409), api_error(502), lost(RequestTimeoutError)])
async def test_creation_is_repeated_if_the_object_is_still_missing(failure: NeonError) -> None:
    api = Api(failure)
    assert await api.run() == "created"
    assert len(api.creations) == 2


@pytest.mark.parametrize(
    "failure",
    [
        *(api_error(status) for status in (400, 401, 403, 404, 422, 429, 503)),
        api_error(500, "GET"),
        lost(method="GET"),
        ClientClosedError("closed", maybe_delivered=True),
        MismatchError("branch", existing=None, differences=["it differs"], path="/projects"),
    ],
)
async def test_other_failures_are_raised_at_once(failure: NeonError) -> None:
    api = Api(failure)
    with pytest.raises(type(failure)) as caught:
        await api.run()
    assert caught.value is failure
    assert len(api.creations) == 1


@pytest.mark.parametrize("attempts", [1, 3, 2000])
@pytest.mark.parametrize("make", [lost, lambda: api_error(409)])
async def test_newest_failure_is_raised_after_the_last_attempt(
    make: Callable[[], NeonError], attempts: int
) -> None:
    failures = [make() for _ in range(attempts + 1)]
    api = Api(*failures)
    policy = RetryPolicy(attempts=attempts, initial=0.1, maximum=1.0, deadline=1e6)
    with pytest.raises(NeonError) as caught:
        await api.run(policy)
    assert caught.value is failures[attempts - 1]
    assert len(api.creations) == attempts
    assert len(api.searches) == attempts + 1


async def test_lock_that_lasted_is_raised_after_one_more_search() -> None:
    locked = api_error(423)
    api = Api(locked)
    with pytest.raises(type(locked)) as caught:
        await api.run()
    assert caught.value is locked
    assert (len(api.searches), len(api.creations)) == (2, 1)


async def test_pauses_double_from_the_first_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    def longest(_low: float, high: float) -> float:
        return high

    monkeypatch.setattr("random.uniform", longest)
    api = Api(*(lost() for _ in range(4)))
    await api.run(RetryPolicy(initial=0.25, maximum=1.0))
    assert api.creations == pytest.approx([0, 0.25, 0.75, 1.75, 2.75])


async def test_no_attempt_starts_after_the_deadline() -> None:
    api = Api(*(lost() for _ in range(1000)))
    with pytest.raises(ConnectionLostError):
        await api.run(RetryPolicy(attempts=1000, initial=1.0, maximum=1.0, deadline=10.0))
    assert api.creations[-1] < 10
    assert 10 < len(api.creations) < 100


async def test_long_wait_for_the_rate_budget_leaves_all_attempts() -> None:
    api = Api(lost(), lost())

    async def create_late() -> str:
        if not api.creations:
            await asyncio.sleep(DEFAULT.deadline + 30)
        return await api.create()

    assert await adopt_or_create(api.adopt, create_late, DEFAULT) == "created"
    assert len(api.creations) == 3


async def test_failure_after_a_lost_response_may_have_been_executed() -> None:
    api = Api(lost(), api_error(403))
    with pytest.raises(APIError) as caught:
        await api.run()
    assert caught.value.maybe_delivered
    with pytest.raises(APIError) as caught:
        await Api(api_error(409), api_error(403)).run()
    assert not caught.value.maybe_delivered


async def test_search_that_always_loses_a_change_is_limited() -> None:
    searches = 0

    async def adopt() -> str:
        nonlocal searches
        searches += 1
        raise lost(method="PATCH")

    with pytest.raises(ConnectionLostError):
        await adopt_or_create(adopt, Api().create, RetryPolicy(attempts=3))
    assert searches == 4


async def test_object_that_is_always_deleted_again_is_a_conflict() -> None:
    api = Api(*(api_error(409) for _ in range(1000)))
    with pytest.raises(ConflictError):
        await api.run()
    assert len(api.creations) == DEFAULT.attempts


async def test_cancellation_passes_through() -> None:
    api = Api(lost())
    task = asyncio.create_task(api.run(RetryPolicy(initial=1e6, maximum=1e6)))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
