"""Every endpoint that is not deprecated has a method. Calls that start operations take ``wait``."""

import inspect
from collections import defaultdict
from collections.abc import Mapping

import pytest

from neonctl_async.types import OperationsResponse
from tests.contract.calls import Call
from tests.contract.description import Description, Endpoint, schema_of
from tests.contract.endpoints import methods_by_endpoint
from tests.contract.known import STARTS_OPERATIONS, UNPUBLISHED_PARAMETERS, WITHOUT_METHOD
from tests.contract.problems import assert_none
from tests.support.methods import CONVENIENCES, Method, public_methods

pytestmark = pytest.mark.contract


def test_every_endpoint_has_a_method(
    description: Description, calls: Mapping[Method, Call | Exception]
) -> None:
    missing = {
        str(endpoint) for endpoint in description.endpoints if not endpoint.deprecated
    } - methods_by_endpoint(description, calls).keys()
    assert_none(
        "endpoints without a method: add one, as docs/contributing.md describes",
        missing - WITHOUT_METHOD.keys(),
    )
    assert_none("entries of WITHOUT_METHOD that have a method", WITHOUT_METHOD.keys() - missing)


def test_each_endpoint_has_one_method(
    description: Description, calls: Mapping[Method, Call | Exception]
) -> None:
    methods: dict[str, list[str]] = defaultdict(list)
    for call in calls.values():
        if isinstance(call, Call):
            endpoint = description.endpoint_of(call.exchange.method, call.exchange.path)
            methods[str(endpoint)].append(str(call.method))
    assert_none(
        "endpoints with more than one method",
        (f"{name}: {' and '.join(names)}" for name, names in methods.items() if len(names) > 1),
    )


@pytest.mark.parametrize("stability", ["alpha", "beta", "unpublished"])
def test_docstrings_state_that_an_endpoint_may_change(
    stability: str, description: Description, calls: Mapping[Method, Call | Exception]
) -> None:
    methods = {str(method): method for method in calls}
    called = methods_by_endpoint(description, calls)
    documented = {
        str(endpoint): inspect.getdoc(methods[called[str(endpoint)]].function) or ""
        for endpoint in description.endpoints
        if str(endpoint) in called
    }
    expected = {
        str(endpoint)
        for endpoint in description.endpoints
        if str(endpoint) in called and endpoint.stability == stability
    }
    stated = {name for name, text in documented.items() if f"{stability.capitalize()}: " in text}
    assert_none(f"{stability} endpoints whose docstring does not state it", expected - stated)
    assert_none(
        f"endpoints that are not {stability}, but whose docstring states it",
        stated - expected - UNPUBLISHED_PARAMETERS.keys(),
    )


def test_list_of_conveniences_names_methods() -> None:
    assert {str(method) for method in public_methods()} >= CONVENIENCES.keys()


def test_only_calls_that_start_operations_take_wait(
    call: Call, endpoint: Endpoint, description: Description
) -> None:
    published = endpoint.method != "GET" and any(
        "operations" in description.resolve(schema).properties
        for response in endpoint.responses.values()
        if (schema := schema_of(response)) is not None
    )
    needless = {str(endpoint)} & STARTS_OPERATIONS.keys() if published else set[str]()
    assert_none("entries of STARTS_OPERATIONS that are published", needless)
    starts = published or str(endpoint) in STARTS_OPERATIONS
    returns_operations = isinstance(call.response_type, type) and issubclass(
        call.response_type, OperationsResponse
    )
    features = {
        "takes wait=": call.method.takes_wait,
        "returns an OperationsResponse": returns_operations,
    }
    assert_none(
        f"{call.method} calls {endpoint}, which {'starts' if starts else 'starts no'} operations",
        (f"{text}: {value}" for text, value in features.items() if value != starts),
    )
