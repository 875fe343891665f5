"""A user's tests may can the answers of the client with aioresponses."""

import pytest

from neonctl_async import NeonClient, NotFoundError, RetryPolicy
from tests.support.canned import Canned
from tests.support.records import API_KEY, PROJECT, operation_json

URL = f"https://console.neon.tech/api/v2/projects/{PROJECT}/operations/op-1"


async def test_a_canned_answer_comes_as_a_struct() -> None:
    with Canned() as canned:
        canned.add("GET", URL, payload={"operation": operation_json(status="finished")})
        async with NeonClient(API_KEY) as neon:
            found = await neon.operations.get(PROJECT, "op-1")
    assert (found.id, found.status) == ("op-1", "finished")


async def test_a_canned_error_is_raised_as_the_class_of_its_status() -> None:
    told = {"code": "GONE", "message": "no such operation"}
    with Canned() as canned:
        canned.add("GET", URL, status=404, payload=told)
        async with NeonClient(API_KEY) as neon:
            with pytest.raises(NotFoundError, match="no such operation") as caught:
                await neon.operations.get(PROJECT, "op-1")
    assert (caught.value.status, caught.value.code) == (404, "GONE")


@pytest.mark.virtual_time
async def test_canned_failures_that_pass_are_tried_again() -> None:
    with Canned() as canned:
        canned.add("GET", URL, status=503, headers={"Retry-After": "7"})
        canned.add("GET", URL, exception=ConnectionResetError())
        canned.add("GET", URL, payload={"operation": operation_json()})
        async with NeonClient(API_KEY, retry=RetryPolicy(initial=0)) as neon:
            await neon.operations.get(PROJECT, "op-1")
            assert neon.requests_sent == 3
