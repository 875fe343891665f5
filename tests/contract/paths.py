"""Names within JSON bodies and their schemas: ``branch.name``, ``endpoints.type``."""

from collections.abc import Iterator

from neonctl_async.transport.protocol import Json
from tests.contract.description import Description, Endpoint, Schema
from tests.contract.witness import Exchange


def names_in(content: Json, prefix: str = "") -> Iterator[tuple[str, Json]]:
    """The path and value of each property in a body; the items of a list share a path."""
    match content:
        case dict():
            for name, value in content.items():
                yield f"{prefix}{name}", value
                yield from names_in(value, f"{prefix}{name}.")
        case list():
            for item in content:
                yield from names_in(item, prefix)
        case _:
            pass


def all_sent(exchange: Exchange) -> list[tuple[str, Json]]:
    """The path and value of each parameter of a request's query and each property of its body."""
    return [*exchange.query, *names_in(exchange.body)]


def values_sent(exchange: Exchange) -> dict[str, Json]:
    """The paths of a request's query and body that lead to something other than an object."""
    return {path: value for path, value in all_sent(exchange) if not isinstance(value, dict)}


def scalars(content: Json) -> list[str]:
    """All that a value holds, sorted, as it would be written into a query."""
    if isinstance(content, list):
        return sorted(text for one in content for text in scalars(one))
    if isinstance(content, dict):
        return scalars(list(content.values()))
    return [str(content).lower().replace("+00:00", "z")]


def properties(description: Description, schema: Schema) -> Iterator[tuple[str, Schema]]:
    """The path and schema of each property that a body may have."""
    whole = description.whole(schema)
    if whole.items:
        yield from properties(description, whole.items)
    for name, one in whole.properties.items():
        inner = description.whole(one)
        yield name, inner
        for path, found in properties(description, inner):
            yield f"{name}.{path}", found


def body_properties(description: Description, endpoint: Endpoint) -> dict[str, Schema]:
    """The path and schema of each property that the body of an endpoint may have."""
    return dict(properties(description, endpoint.body)) if endpoint.body else {}
