"""Every endpoint of the tags that have methods has one, and what starts work can be waited for."""

from collections import defaultdict
from collections.abc import Mapping

import pytest

from neonctl_async.types import OperationsResponse
from tests.contract.calls import Call
from tests.contract.description import Description, Endpoint, schema_of
from tests.contract.endpoints import method_of_each
from tests.contract.known import NO_METHOD, STARTS
from tests.contract.verdict import agrees
from tests.support.methods import CONVENIENCES, Method, public_methods

pytestmark = pytest.mark.contract

TAGS = frozenset(
    {
        "API Key",
        "Branch",
        "Consumption",
        "Endpoint",
        "Operation",
        "Organizations",
        "Project",
        "Region",
        "Snapshot",
        "Users",
    }
)


def test_every_endpoint_has_a_method(
    description: Description, calls: Mapping[Method, Call | Exception]
) -> None:
    missing = {
        str(endpoint)
        for endpoint in description.endpoints
        if TAGS.intersection(endpoint.tags) and not endpoint.deprecated
    } - method_of_each(description, calls).keys()
    agrees("endpoints without a method", missing - NO_METHOD.keys())
    agrees("NO_METHOD names endpoints that have one", NO_METHOD.keys() - missing)


def test_every_tag_is_published(description: Description) -> None:
    assert {tag for endpoint in description.endpoints for tag in endpoint.tags} >= TAGS


def test_no_two_methods_call_one_endpoint(
    description: Description, calls: Mapping[Method, Call | Exception]
) -> None:
    callers: dict[str, list[str]] = defaultdict(list)
    for call in calls.values():
        if isinstance(call, Call):
            found = description.endpoint_of(call.exchange.method, call.exchange.path)
            callers[str(found)].append(str(call.method))
    agrees(
        "endpoints with several methods",
        (f"{name}: {' and '.join(one)}" for name, one in callers.items() if len(one) > 1),
    )


def test_the_list_of_conveniences_names_methods() -> None:
    assert {str(method) for method in public_methods()} >= CONVENIENCES.keys()


def test_what_starts_operations_can_be_waited_for(
    call: Call, endpoint: Endpoint, description: Description
) -> None:
    published = endpoint.method != "GET" and any(
        "operations" in description.whole(schema).properties
        for answer in endpoint.answers.values()
        if (schema := schema_of(answer)) is not None
    )
    agrees("STARTS names what is published", {str(endpoint)} & STARTS.keys() if published else [])
    starts = published or str(endpoint) in STARTS
    is_started = (
        issubclass(call.answer, OperationsResponse) if isinstance(call.answer, type) else False
    )
    agrees(
        f"{call.method} calls {endpoint}, which {'starts' if starts else 'starts no'} operations",
        [
            f"{what} just where operations are started"
            for what, found in {
                "takes wait=": call.method.takes_wait,
                "is answered with a Started": is_started,
            }.items()
            if found != starts
        ],
    )
