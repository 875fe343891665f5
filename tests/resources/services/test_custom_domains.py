import pytest

from neonctl_async import NeonClient
from neonctl_async.types import CustomDomain
from tests.models.services.records import CUSTOM_DOMAIN
from tests.resources.wire import (
    Call,
    no_content,
    record,
    records_in,
    responding_in_sequence,
)

PATH = "/projects/p-1/branches/br-1/custom-domains"
TARGET = {"domain": "Shop.example.com", "entity_type": "function", "entity_id": "shop"}
CHECKED = {
    "status": "error",
    "dns_status": "misconfigured",
    "binding_status": "present",
    "status_reason": "cname-not-pointing-at-edge",
}
LISTED = records_in("custom_domains", CustomDomain, {**CUSTOM_DOMAIN, **CHECKED})

CALLS = [
    Call(lambda neon: neon.custom_domains.list("p-1", "br-1").collect(), f"GET {PATH}", LISTED),
    Call(
        lambda neon: neon.custom_domains.list("p-1", "br-1", limit=1000).collect(),
        f"GET {PATH}",
        LISTED,
        query={"limit": "1000"},
    ),
    Call(
        lambda neon: neon.custom_domains.register("p-1", "br-1", **TARGET),
        f"POST {PATH}",
        record(CustomDomain, CUSTOM_DOMAIN, 201),
        body=TARGET,
    ),
    Call(
        lambda neon: neon.custom_domains.delete("p-1", "br-1", "Shop.example.com"),
        f"DELETE {PATH}/Shop.example.com",
        no_content(),
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()


async def test_next_page_has_the_cursor_in_its_query() -> None:
    domains = [{**CUSTOM_DOMAIN, "domain": f"{name}.example.com"} for name in "abc"]
    async with responding_in_sequence(
        {"custom_domains": domains[:2], "pagination": {"next": "page-2"}},
        {"custom_domains": domains[1:], "pagination": {}},
    ) as exchange:
        found = await exchange.neon.custom_domains.list("p-1", "br-1", limit=2).collect()
    assert [record.domain[0] for record in found] == ["a", "b", "c"]
    assert [request.query for request in exchange.all_sent] == [
        {"limit": "2"},
        {"limit": "2", "cursor": "page-2"},
    ]


@pytest.mark.parametrize("limit", [0, 1001])
async def test_limit_out_of_range_is_rejected_before_the_request(limit: int) -> None:
    neon = NeonClient("key")
    with pytest.raises(ValueError, match=f"limit is {limit}: expected 1 to 1000"):
        neon.custom_domains.list("p-1", "br-1", limit=limit)
