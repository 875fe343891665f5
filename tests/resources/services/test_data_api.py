from typing import Any

import pytest

from neonctl_async.types import BranchDataApi, DataApiCreated, DataApiSettings
from tests.models.services.records import DATA_API
from tests.resources.wire import Call, Response, no_content, record

PATH = "/projects/p-1/branches/br-1/data-api/my%20db"
IDS = ("p-1", "br-1", "my db")
SETTINGS: dict[str, Any] = {"db_schemas": ["public", "shop"], "db_max_rows": 1000}
PROVIDER: dict[str, Any] = {
    "auth_provider": "external",
    "jwks_url": "https://id.example.com/keys",
    "provider_name": "Example",
    "jwt_audience": "shop",
    "add_default_grants": True,
    "skip_auth_schema": False,
}
CREATED = record(DataApiCreated, {"url": "https://api.example.com/neondb"}, 201)

CALLS = [
    Call(
        lambda neon: neon.data_api.get(*IDS),
        f"GET {PATH}",
        record(BranchDataApi, {**DATA_API, "settings": SETTINGS, "available_schemas": ["shop"]}),
    ),
    Call(lambda neon: neon.data_api.create(*IDS), f"POST {PATH}", CREATED),
    Call(
        lambda neon: neon.data_api.create(*IDS, **PROVIDER, settings=DataApiSettings(**SETTINGS)),
        f"POST {PATH}",
        CREATED,
        body={**PROVIDER, "settings": SETTINGS},
    ),
    Call(lambda neon: neon.data_api.update(*IDS), f"PATCH {PATH}", Response({}, None, 201)),
    Call(
        lambda neon: neon.data_api.update(*IDS, settings=DataApiSettings(**SETTINGS)),
        f"PATCH {PATH}",
        Response({}, None, 201),
        body={"settings": SETTINGS},
    ),
    Call(lambda neon: neon.data_api.delete(*IDS), f"DELETE {PATH}", Response({}, None)),
    Call(lambda neon: neon.data_api.delete(*IDS), f"DELETE {PATH}", no_content()),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()
