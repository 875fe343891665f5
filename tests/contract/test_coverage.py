"""Every endpoint of the tags that have methods has one, and what starts work can be waited for."""

from collections import defaultdict
from collections.abc import Mapping

import pytest

from neonctl_async import Started
from tests.contract.calls import Call
from tests.contract.description import Description, Endpoint, schema_of
from tests.contract.endpoints import method_of_each
from tests.contract.known import NO_METHOD
from tests.contract.methods import CONVENIENCES, Method, public_methods

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
    methods = method_of_each(description, calls)
    missing = [
        str(endpoint)
        for endpoint in description.endpoints
        if TAGS.intersection(endpoint.tags) and not endpoint.deprecated
        if str(endpoint) not in methods and str(endpoint) not in NO_METHOD
    ]
    assert missing == []


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
    assert {name: one for name, one in callers.items() if len(one) > 1} == {}


def test_the_list_of_conveniences_names_methods() -> None:
    assert {str(method) for method in public_methods()} >= CONVENIENCES.keys()


def test_what_starts_operations_can_be_waited_for(
    call: Call, endpoint: Endpoint, description: Description
) -> None:
    starts = endpoint.method != "GET" and any(
        "operations" in description.whole(schema).properties
        for answer in endpoint.answers.values()
        if (schema := schema_of(answer)) is not None
    )
    told = f"{endpoint} {'starts' if starts else 'starts no'} operations"
    assert call.method.takes_wait == starts, f"{told}: wait= of {call.method}"
    if starts:
        assert issubclass(call.answer, Started), f"{told}: the answer of {call.method}"
