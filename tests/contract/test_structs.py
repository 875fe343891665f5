"""Structs have every published field, with the published type."""

from collections.abc import Iterator, Mapping

import pytest

from tests.contract.calls import Call
from tests.contract.description import Description, Endpoint, schema_of
from tests.contract.known import DIFFERENCES
from tests.contract.problems import assert_none
from tests.contract.shapes import Comparison
from tests.support.methods import Method

pytestmark = pytest.mark.contract


def differences(comparison: Comparison, call: Call, endpoint: Endpoint) -> Iterator[str]:
    for response in endpoint.responses.values():
        schema = schema_of(response)
        if schema is not None:
            yield from comparison.differences(schema, call.response_type, f"response of {endpoint}")


def test_structs_have_every_published_field(
    call: Call, endpoint: Endpoint, description: Description
) -> None:
    found = set(differences(Comparison(description), call, endpoint))
    assert_none(f"{call.method} calls {endpoint}", found - DIFFERENCES.keys())


def test_every_field_is_published_and_every_known_difference_exists(
    calls: Mapping[Method, Call | Exception], description: Description
) -> None:
    comparison = Comparison(description)
    found: set[str] = set()
    for call in calls.values():
        if isinstance(call, Call):
            endpoint = description.endpoint_of(call.exchange.method, call.exchange.path)
            if endpoint is not None:
                found.update(differences(comparison, call, endpoint))
    unpublished = set(comparison.unpublished())
    assert_none("fields of Structs", unpublished - DIFFERENCES.keys())
    assert_none(
        "entries of DIFFERENCES that do not differ", DIFFERENCES.keys() - found - unpublished
    )
