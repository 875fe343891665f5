"""The changes from one description to another, as a list of work."""

from collections.abc import Iterator

from tests.contract.description import Description, Endpoint, Schema, schema_of
from tests.contract.paths import schema_paths


def changes(before: Description, after: Description) -> Iterator[str]:
    """Yield what only one of two descriptions has, such as ``- GET /path: parameter search``.

    A line starts with ``+`` for what is new, and with ``-`` for what is gone. It names an endpoint,
    a parameter, a field, a member of an enumeration, or an error status.
    """
    old, new = ({str(endpoint): endpoint for endpoint in d.endpoints} for d in (before, after))
    yield from _changed("", set(old), set(new))
    for name in sorted(old.keys() & new.keys()):
        yield from _changed(
            f"{name}: ", set(_parts(before, old[name])), set(_parts(after, new[name]))
        )


def _changed(prefix: str, before: set[str], after: set[str]) -> Iterator[str]:
    yield from (f"- {prefix}{name}" for name in sorted(before - after))
    yield from (f"+ {prefix}{name}" for name in sorted(after - before))


def _parts(description: Description, endpoint: Endpoint) -> Iterator[str]:
    """Yield everything of an endpoint that a client may lack."""
    if endpoint.deprecated:
        yield "deprecated"
    for name, parameter in endpoint.query.items():
        yield from _named(description, "parameter", name, parameter.schema)
    if endpoint.body is not None:
        yield "body"
        for path, schema in schema_paths(description, endpoint.body):
            yield from _named(description, "body field", path, schema)
    for status, response in endpoint.responses.items():
        yield f"status {status}"
        content = schema_of(response)
        if content is not None:
            for path, inner in schema_paths(description, content):
                yield from _named(description, "response field", path, inner)
    yield from (f"error status {status}" for status in endpoint.error_statuses)


def _named(description: Description, kind: str, name: str, schema: Schema) -> Iterator[str]:
    yield f"{kind} {name}"
    resolved = description.resolve(schema)
    values = resolved.items.enum if resolved.items else resolved.enum
    yield from (f"{kind} {name} = {value}" for value in values)
