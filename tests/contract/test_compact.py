"""The part of the description that the local control plane has is up to date and complete."""

from collections.abc import Iterator
from typing import Any

import pytest

from neonctl_async.local.api.description import published
from neonctl_async.local.api.description.checks import UNPUBLISHED
from neonctl_async.local.server.routes import ROUTE_NAMES
from tests.contract.compact import compact, license_text
from tests.contract.description import Description

pytestmark = pytest.mark.contract

COMMAND = "run make endpoints to update the file"


def test_file_is_the_description(description: Description) -> None:
    assert published.FILE.read_text(encoding="utf-8") == compact(description), COMMAND


def test_file_has_the_license_of_its_source() -> None:
    assert published.LICENSE_FILE.read_text(encoding="utf-8") == license_text(), COMMAND


def test_file_names_the_endpoints_that_only_the_sdk_has() -> None:
    assert len(published.description().newer) == 17


def test_each_route_is_published_or_replaced_by_a_published_one(description: Description) -> None:
    names = {str(endpoint) for endpoint in description.endpoints}
    assert ROUTE_NAMES - UNPUBLISHED.keys() <= names
    assert set(UNPUBLISHED.values()) <= names
    assert UNPUBLISHED.keys() <= ROUTE_NAMES - names


# Any: a part of a YAML document.
def alternatives(description: Description, part: Any) -> Iterator[str]:
    """Yield the keywords of a schema that the file simplifies."""
    if isinstance(part, list):
        for item in part:
            yield from alternatives(description, item)
    elif isinstance(part, dict):
        if "$ref" in part:
            _, _, kind, name = part["$ref"].split("/")
            yield from alternatives(description, description.document["components"][kind][name])
        yield from part.keys() & {"oneOf", "anyOf", "not", "multipart/form-data"}
        yield from alternatives(description, list(part.values()))


def test_no_body_of_a_served_endpoint_is_simplified(description: Description) -> None:
    for endpoint in description.endpoints:
        if str(endpoint) in ROUTE_NAMES:
            operation = description.document["paths"][endpoint.path][endpoint.method.lower()]
            body = operation.get("requestBody", {})
            assert list(alternatives(description, body)) == [], str(endpoint)
