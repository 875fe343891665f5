"""A program of a user, with the types that it relies on: never run, checked by ``make dist``."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import assert_type

import neonctl_async as api
from neonctl_async import NeonClient, types
from neonctl_async.progress import WaitProgress
from neonctl_async.telemetry import tracing
from neonctl_async.testing import FakeClockLoop, loop_clock
from neonctl_async.testing.recorded import RecordedRequest, RecordedResponses
from neonctl_local import Fault, InjectedFault, LocalControlPlane, ServedRequest
from pytest_neonctl_async import BranchFactory, ControlPlane

PROJECT = "late-frost-12345678"


def settings(config_file: str) -> NeonClient:
    heard: list[api.RetryPlanned] = []
    neon = NeonClient(
        api.Secret("key"),
        base_url="https://console.neon.tech/api/v2",
        timeout=api.Timeout(connect=5, read=10, total=20),
        retry=api.RetryPolicy(attempts=3),
        budget=api.RateBudget(per_minute=100).split(2),
        polling=api.PollPolicy.constant(1),
        hooks=[api.Hooks(on_retry=heard.append), tracing()],
        max_connections=10,
        ca_file=config_file,
        trust_env=True,
    )
    assert_type(neon.budget, api.RateBudget)
    assert_type(neon.budget.per_minute, int | None)
    assert_type(neon.base_url, str)
    assert_type(neon.requests_sent, int)
    assert_type(api.RetryPolicy.never(), api.RetryPolicy)
    assert_type(heard[0].error, api.NeonError)
    return neon


async def failing(neon: NeonClient) -> types.Branch | None:
    try:
        created = await neon.branches.create(PROJECT, init_source="schema-only", wait=True)
    except api.LookupFailedError as error:
        raise error from None
    except api.NeonError as error:
        assert_type(error.result, types.OperationsResponse | None)
        match error.result:
            case types.BranchCreated(branch=branch) | types.EnsuredBranch(branch=branch):
                return branch
            case _:
                return None
    return created.branch


async def waiting(neon: NeonClient) -> None:
    begun = await neon.projects.create(name="shop")
    ref = api.OperationRef(project_id=PROJECT, id="op-1")
    done = await neon.operations.wait([begun, ref, *begun.operations], timeout=None)
    assert_type(done, list[api.Operation])
    assert_type(done[0].created_at, datetime)
    assert_type(done[0].ref, api.OperationRef)
    async for operation in neon.operations.as_completed(begun):
        assert_type(operation, api.Operation)
    async with aclosing(neon.operations.watch(begun, timeout=60)) as changes:
        async for change in changes:
            assert_type(change.status, api.OperationStatus)
    with WaitProgress(neon) as progress:
        await neon.operations.wait(begun, on_update=progress, raise_on_failure=False)
    async with neon.branches.ephemeral(PROJECT, ttl_seconds=None) as created:
        assert_type(created, types.BranchCreated)
        assert_type(created.connection_uri, api.ConnectionUri)
        assert_type(created.connection_uri.reveal(), str)


async def errors(neon: NeonClient) -> None:
    try:
        await neon.projects.delete(PROJECT, wait=60)
    except api.OperationFailedError as error:
        assert_type(error.failed, list[api.Operation])
    except api.StateTimeoutError as error:
        assert_type((error.wanted, error.state), tuple[str, str | None])
    except api.WaitTimeoutError as error:
        assert_type(error.timeout, float)
        assert_type(error.last_error, api.NeonError | None)
    except api.WaitError as error:
        assert_type(error.settled, list[api.Operation])
        assert_type(error.pending, list[api.Operation | api.OperationRef])
    except api.APIError as error:
        assert_type((error.status, error.code, error.message), tuple[int, str, str])
        assert_type((error.request_id, error.retry_after), tuple[str, float | None])
    except api.TransportError as error:
        assert_type((error.method, error.path, error.request_id), tuple[str, str, str])
    except api.InvalidResponseError as error:
        assert_type((error.excerpt, error.status), tuple[str, int])
    except api.NeonError as error:
        assert_type(error.maybe_delivered, bool)
        if isinstance(error.result, types.ProjectDeleted):
            assert_type(error.result.operations, list[api.Operation])


async def paging_and_requests(neon: NeonClient) -> None:
    listing = neon.projects.list(limit=100, search="shop")
    assert_type(listing, api.Paginator[types.Project])
    assert_type(await listing.collect(limit=5), list[types.Project])
    async for project in listing:
        assert_type(project.pg_version, int)
    async for page in listing.pages():
        assert_type(page, list[types.Project])
    assert_type(await neon.request("GET", "/regions"), types.Json)
    assert_type(
        await neon.request("POST", "/projects", body={}, type=types.OperationsResponse),
        types.OperationsResponse,
    )


async def local_control_plane() -> None:
    async with LocalControlPlane() as control_plane:
        assert_type((control_plane.api_key, control_plane.base_url), tuple[str, str])
        assert_type(control_plane.inject(Fault(status=503, times=1)), InjectedFault)
        assert_type(control_plane.requests, Sequence[ServedRequest])


async def tests(make_branch: BranchFactory, control_plane: ControlPlane) -> None:
    assert_type(await make_branch(parent_id="br-1"), types.BranchCreated)
    assert_type(make_branch.create(), types.BranchCreated)
    assert_type(await control_plane.requests(), Sequence[ServedRequest])


def tests_without_waiting() -> None:
    with asyncio.Runner(loop_factory=FakeClockLoop) as runner:
        runner.run(asyncio.sleep(3600))
    assert_type(loop_clock(), Callable[[], datetime])
    recorded = RecordedResponses()
    recorded.add("GET", "/regions", {"regions": []})
    assert_type(recorded.requests, list[RecordedRequest])
