"""Every field of an answer is read, and as what it is published to be."""

from collections.abc import Iterator, Mapping

import pytest

from tests.contract.calls import Call
from tests.contract.description import Description, Endpoint, schema_of
from tests.contract.known import DIFFERENCES
from tests.contract.shapes import Comparison
from tests.contract.verdict import agrees
from tests.support.methods import Method

pytestmark = pytest.mark.contract


def differences(comparison: Comparison, call: Call, endpoint: Endpoint) -> Iterator[str]:
    for answer in endpoint.answers.values():
        schema = schema_of(answer)
        if schema is not None:
            yield from comparison.differences(schema, call.answer, f"answer of {endpoint}")


def test_a_method_reads_all_that_is_published(
    call: Call, endpoint: Endpoint, description: Description
) -> None:
    found = set(differences(Comparison(description), call, endpoint))
    agrees(f"{call.method} calls {endpoint}", found - DIFFERENCES.keys())


def test_all_that_is_read_is_published_and_no_known_difference_is_history(
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
    agrees("fields of Structs", unpublished - DIFFERENCES.keys())
    agrees("DIFFERENCES tells what is none", DIFFERENCES.keys() - found - unpublished)
