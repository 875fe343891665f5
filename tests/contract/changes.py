"""The changes from one description to another."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tests.contract.description import Description, Endpoint, Schema, schema_of


class Part(NamedTuple):
    """A part of an endpoint that a client may lack, such as a parameter or an error status."""

    kind: str
    name: str = ""
    value: str = ""
    """The member, if the part is a member of an enumeration."""

    def __str__(self) -> str:
        member = f" = {self.value}" if self.value else ""
        return f"{self.kind} {self.name}".rstrip() + member


class Change(NamedTuple):
    """A difference between two descriptions. ``str()`` is ``- GET /path: parameter search``."""

    sign: str
    """``+`` for a new part, ``-`` for one that is gone, ``~`` for one that is different."""
    endpoint: str
    part: Part | None = None
    """None for the whole endpoint."""
    facts: str = ""
    """The type and the like. For a different part, before and after: ``string -> integer``."""

    def __str__(self) -> str:
        text = f"{self.sign} {self.endpoint}"
        if self.part is not None:
            text += f": {self.part}"
        return f"{text}: {self.facts}" if self.sign == "~" else text


def changes(before: Description, after: Description) -> Iterator[Change]:
    """Yield the endpoints and parts that only one of two descriptions has, or that differ."""
    old, new = ({str(endpoint): endpoint for endpoint in d.endpoints} for d in (before, after))
    yield from (Change("-", name) for name in sorted(old.keys() - new.keys()))
    yield from (Change("+", name) for name in sorted(new.keys() - old.keys()))
    for name in sorted(old.keys() & new.keys()):
        yield from _changed_parts(
            name, dict(_parts(before, old[name])), dict(_parts(after, new[name]))
        )


def _changed_parts(
    endpoint: str, before: Mapping[Part, str], after: Mapping[Part, str]
) -> Iterator[Change]:
    for part in sorted(before.keys() - after.keys()):
        yield Change("-", endpoint, part, before[part])
    for part in sorted(after.keys() - before.keys()):
        yield Change("+", endpoint, part, after[part])
    for part in sorted(before.keys() & after.keys()):
        if before[part] != after[part]:
            yield Change("~", endpoint, part, f"{before[part]} -> {after[part]}")


def _parts(description: Description, endpoint: Endpoint) -> Iterator[tuple[Part, str]]:
    """Yield each part of an endpoint with its facts."""
    if endpoint.deprecated:
        yield Part("deprecated"), ""
    yield Part("stability"), endpoint.stability or "stable"
    for name, parameter in endpoint.query.items():
        facts = {"required": parameter.required, "deprecated": parameter.deprecated}
        true = [fact for fact, is_true in facts.items() if is_true]
        yield from _named(description, "parameter", name, parameter.schema, true)
    if endpoint.body is not None:
        yield Part("body"), ""
        yield from _fields(description, "body field", endpoint.body)
    for status, response in endpoint.responses.items():
        yield Part("status", str(status)), ""
        schema = schema_of(response)
        if schema is not None:
            yield from _fields(description, "response field", schema)
    for status in endpoint.error_statuses:
        yield Part("error status", str(status)), ""


def _fields(
    description: Description, kind: str, schema: Schema, prefix: str = ""
) -> Iterator[tuple[Part, str]]:
    """Yield each property that a body may have. ``*`` stands for the names in a map."""
    resolved = description.resolve(schema)
    if resolved.items:
        yield from _fields(description, kind, resolved.items, prefix)
    if isinstance(resolved.values, Schema):
        yield from _fields(description, kind, resolved.values, f"{prefix}*.")
    for name, inner in resolved.properties.items():
        facts = ["required"] if name in resolved.required else []
        yield from _named(description, kind, f"{prefix}{name}", inner, facts)
        yield from _fields(description, kind, inner, f"{prefix}{name}.")


def _named(
    description: Description, kind: str, name: str, schema: Schema, facts: list[str]
) -> Iterator[tuple[Part, str]]:
    resolved = description.resolve(schema)
    yield Part(kind, name), ", ".join(dict.fromkeys([*_type_facts(resolved), *facts]))
    values = resolved.items.enum if resolved.items else resolved.enum
    yield from ((Part(kind, name, str(value)), "") for value in values)


def _type_facts(schema: Schema) -> Iterator[str]:
    if schema.enum:
        yield "enumeration"
    else:
        yield "timestamp" if schema.format == "date-time" else schema.type or "any type"
    if schema.nullable:
        yield "may be null"
    if schema.deprecated:
        yield "deprecated"
    if schema.maximum is not None:
        yield f"at most {schema.maximum:g}"
