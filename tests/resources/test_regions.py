import pytest

from neonctl_async.types import Region
from tests.models.records import REGION, decode
from tests.resources.wire import Call, SentRequest, check_call

CALLS = [
    Call(
        lambda neon: neon.regions.list(),
        sends=SentRequest("GET", "/regions", {}, None),
        response={"regions": [REGION]},
        returns=[decode(Region, REGION)],
    ),
    Call(
        lambda neon: neon.regions.list(org_id="org-1"),
        sends=SentRequest("GET", "/regions", {"org_id": "org-1"}, None),
        response={"regions": []},
        returns=[],
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await check_call(call)
