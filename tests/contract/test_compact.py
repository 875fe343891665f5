"""The part of the description that the local control plane has is up to date and complete."""

from collections.abc import Iterator

import pytest
from msgspec import UnsetType

from neonctl_local.api.description import published
from neonctl_local.api.description.checks import UNPUBLISHED
from neonctl_local.api.description.published import Schema
from neonctl_local.server.routes import ROUTE_NAMES
from tests.contract.compact import compact, license_text
from tests.contract.description import Description

pytestmark = pytest.mark.contract

COMMAND = "run make endpoints to update the file"


def test_file_is_the_description(description: Description) -> None:
    assert published.FILE.read_text(encoding="utf-8") == compact(description), COMMAND


def test_file_has_the_license_of_its_source() -> None:
    assert published.LICENSE_FILE.read_text(encoding="utf-8") == license_text(), COMMAND


def test_each_route_is_published_or_replaced_by_a_published_one(description: Description) -> None:
    names = {str(endpoint) for endpoint in description.endpoints}
    assert ROUTE_NAMES - UNPUBLISHED.keys() <= names
    assert set(UNPUBLISHED.values()) <= names
    assert UNPUBLISHED.keys() <= ROUTE_NAMES - names


def objects(schema: Schema) -> Iterator[Schema]:
    """Yield the schemas of the objects within a schema, with references resolved."""
    schema = published.description().schemas[schema.ref] if schema.ref else schema
    if schema.type == "object":
        yield schema
    for part in (schema.items, schema.additional_properties, *schema.properties.values()):
        if not isinstance(part, UnsetType):
            yield from objects(part)


def test_no_body_of_a_served_endpoint_is_simplified() -> None:
    endpoints = published.description().endpoints
    for name in ROUTE_NAMES - UNPUBLISHED.keys():
        body = endpoints[name].body
        if not isinstance(body, UnsetType):
            assert all(part.properties or part.additional_properties for part in objects(body)), (
                name
            )
