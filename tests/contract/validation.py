"""Validates JSON against the published description. Unknown properties are violations."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from neonctl_async.transport.encoding import Json
from tests.contract.description import Description, Endpoint

_FORMATS = FormatChecker(["uuid"])


@_FORMATS.checks("date-time", ValueError)
def _is_date_time(text: object) -> bool:
    return bool(datetime.fromisoformat(str(text)))


def violations(
    description: Description, endpoint: Endpoint, status: int, content: Json
) -> Iterator[str]:
    """Yield each violation of the published schema of a response."""
    root = strict_schema(description, description.response_schema(endpoint, status))
    validator: Any = Draft202012Validator(root, format_checker=_FORMATS)
    for error in validator.iter_errors(content):
        if "propertyNames" in error.schema_path:
            yield f"{error.json_path}.{error.instance} is not published"
        else:
            yield f"{error.json_path}: {error.message}"


def strict_schema(description: Description, schema: dict[str, Any]) -> dict[str, Any]:
    """Translate a published schema to JSON Schema that allows no unknown property."""
    published = description.document["components"]["schemas"]
    components = {name: _strict(part, published, closed=False) for name, part in published.items()}
    return {"allOf": [_strict(schema, published)], "components": {"schemas": components}}


def _strict(
    schema: dict[str, Any], published: dict[str, Any], *, closed: bool = True
) -> dict[str, Any]:
    """Translate a schema of OpenAPI 3.0 to JSON Schema.

    A closed object allows no unknown property. A part of ``allOf`` cannot be closed, because it
    does not list the properties of the other parts. A component may be such a part.
    """
    strict = dict(schema)
    for name in strict.keys() & {"items", "additionalProperties"}:
        if isinstance(schema[name], dict):
            strict[name] = _strict(schema[name], published)
    if "properties" in schema:
        strict["properties"] = {
            name: _strict(inner, published) for name, inner in schema["properties"].items()
        }
    if "allOf" in schema:
        strict["allOf"] = [_strict(part, published, closed=False) for part in schema["allOf"]]
    if closed and (names := _property_names(schema, published)):
        strict["propertyNames"] = {"enum": sorted(names)}
    return {"anyOf": [strict, {"type": "null"}]} if schema.get("nullable") else strict


def _property_names(schema: dict[str, Any], published: dict[str, Any]) -> set[str]:
    """Return the names that an object may have; none if it may have any name."""
    if schema.get("additionalProperties"):
        return set()
    parts = list(schema.get("allOf", []))
    if "$ref" in schema:
        parts.append(published[schema["$ref"].rpartition("/")[2]])
    names = [_property_names(part, published) for part in parts]
    return {*schema.get("properties", {})}.union(*names)
