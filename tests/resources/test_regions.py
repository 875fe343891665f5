import pytest

from neonctl_async.types import Region
from tests.models.records import REGION, decode
from tests.resources.wire import Asked, Call, check

CALLS = [
    Call(
        lambda neon: neon.regions.list(),
        asks=Asked("GET", "/regions", {}, None),
        shown={"regions": [REGION]},
        gives=[decode(Region, REGION)],
    ),
    Call(
        lambda neon: neon.regions.list(org_id="org-1"),
        asks=Asked("GET", "/regions", {"org_id": "org-1"}, None),
        shown={"regions": []},
        gives=[],
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_what_it_asks_and_gives(call: Call) -> None:
    await check(call)
