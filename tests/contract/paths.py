"""The paths of properties in JSON bodies and their schemas: ``branch.name``, ``endpoints.type``."""

import json
from collections.abc import Iterator

from neonctl_async.transport.encoding import Json
from tests.contract.description import Description, Endpoint, Schema
from tests.contract.recorder import Exchange


def body_paths(content: Json, prefix: str = "") -> Iterator[tuple[str, Json]]:
    """Yield the path and value of each property of a body. All items of a list have one path."""
    match content:
        case dict():
            for name, value in content.items():
                yield f"{prefix}{name}", value
                yield from body_paths(value, f"{prefix}{name}.")
        case list():
            for item in content:
                yield from body_paths(item, prefix)
        case _:
            pass


def sent_items(exchange: Exchange) -> list[tuple[str, Json]]:
    """Return the path and value of each query parameter and each property of the body."""
    return [*exchange.query, *body_paths(exchange.body)]


def sent_values(exchange: Exchange) -> dict[str, Json]:
    """Return the sent items whose values are not objects."""
    return {path: value for path, value in sent_items(exchange) if not isinstance(value, dict)}


def scalars(content: Json) -> list[str]:
    """Return the sorted scalars within a value, in the form of query parameters."""
    if isinstance(content, list):
        return sorted(text for item in content for text in scalars(item))
    if isinstance(content, dict):
        return scalars(list(content.values()))
    if isinstance(content, str) and content.startswith("{"):  # the environment of a function
        return scalars(json.loads(content))
    return [str(content).lower().replace("+00:00", "z")]


def schema_paths(description: Description, schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield the path and schema of each property that a body may have."""
    resolved = description.resolve(schema)
    if resolved.items:
        yield from schema_paths(description, resolved.items)
    for name, schema_of_property in resolved.properties.items():
        inner = description.resolve(schema_of_property)
        yield name, inner
        for path, nested in schema_paths(description, inner):
            yield f"{name}.{path}", nested


def body_properties(description: Description, endpoint: Endpoint) -> dict[str, Schema]:
    """Return the path and schema of each property that the body of an endpoint may have."""
    return dict(schema_paths(description, endpoint.body)) if endpoint.body else {}
