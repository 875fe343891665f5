import pytest

from neonctl_async.types import Region
from tests.models.records import REGION
from tests.resources.wire import Call, Response, records_in

CALLS = [
    Call(lambda neon: neon.regions.list(), "GET /regions", records_in("regions", Region, REGION)),
    Call(
        lambda neon: neon.regions.list(org_id="org-1"),
        "GET /regions",
        Response({"regions": []}, []),
        query={"org_id": "org-1"},
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()
