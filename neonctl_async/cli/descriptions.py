"""The API's endpoints as text, from the local control plane's API description. Pure: no I/O."""

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from neonctl_local.api.description.published import Endpoint, Schema, description

_LIMITS: Final = (
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
    ("min_length", "at least {} characters"),
    ("max_length", "at most {} characters"),
    ("min_items", "at least {} items"),
    ("max_items", "at most {} items"),
)


def endpoint_names() -> Iterator[str]:
    """Yield all endpoints, such as ``GET /projects``, sorted by path."""
    found = description().endpoints
    yield from sorted(found, key=lambda name: name.split(maxsplit=1)[::-1])


def endpoints_below(path: str) -> Iterator[str]:
    """Yield the endpoints at a path and below it. The path may contain ids."""
    depth = len(path.strip("/").split("/")) if path.strip("/") else 0
    for name in endpoint_names():
        parts = name.partition(" ")[2].strip("/").split("/")
        if depth == 0 or _matches(path, "/".join(parts[:depth])):
            yield name


def described(wanted: str) -> Iterator[str]:
    """Yield lines that describe the endpoints of a path, or the one of ``METHOD PATH``.

    The path may contain ids in place of the names in braces.
    """
    method, _, path = wanted.strip().rpartition(" ")
    for name in endpoint_names():
        its_method, _, its_path = name.partition(" ")
        if method.upper().strip() in {"", its_method} and _matches(path, its_path):
            endpoint = description().endpoints[name]
            yield f"{name} ({endpoint.stability})" if endpoint.stability else name
            rows = list(_rows(its_path, endpoint))
            width = max((len(row[0]) for row in rows), default=0)
            yield from (f"  {row[0]:{width}}  {row[1]:5}  {row[2]}" for row in rows)


def _matches(path: str, template: str) -> bool:
    parts, wanted = path.partition("?")[0].strip("/").split("/"), template.strip("/").split("/")
    return len(parts) == len(wanted) and all(
        part == other or (other.startswith("{") and part)
        for part, other in zip(parts, wanted, strict=True)
    )


def _rows(path: str, endpoint: Endpoint) -> Iterator[tuple[str, str, str]]:
    for part in path.split("/"):
        if part.startswith("{"):
            yield part.strip("{}"), "path", "string"
    for name, parameter in endpoint.query.items():
        yield name, "query", _text(parameter.schema, is_required=parameter.required)
    if endpoint.body is not UNSET:
        for name, text in _fields("", endpoint.body, is_required=endpoint.body_required, within=()):
            yield name or "(all)", "body", text


def _fields(
    name: str, schema: Schema, *, is_required: bool, within: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Yield the fields of a body: a path, such as ``branch.name``, and a description."""
    if schema.ref:
        if schema.ref in within:  # a schema that contains itself
            yield name, schema.ref
            return
        within = (*within, schema.ref)
        schema = _resolved(schema)
    if schema.items is not UNSET and _resolved(schema.items).properties:
        yield from _fields(f"{name}[]", schema.items, is_required=is_required, within=within)
    elif schema.properties:
        for inner, part in schema.properties.items():
            path = f"{name}.{inner}" if name else inner
            required = inner in schema.required
            yield from _fields(path, part, is_required=required, within=within)
    else:
        yield name, _text(schema, is_required=is_required)


def _resolved(schema: Schema) -> Schema:
    return description().schemas[schema.ref] if schema.ref else schema


def _text(schema: Schema, *, is_required: bool) -> str:
    schema = _resolved(schema)
    texts = [" | ".join(schema.enum) or schema.format or schema.type]
    if schema.items is not UNSET:
        texts = [f"list of {_text(schema.items, is_required=False)}"]
    texts += [
        limit.format(value)
        for field, limit in _LIMITS
        if (value := getattr(schema, field)) is not None
    ]
    texts += ["or null"] if schema.nullable else []
    texts += ["required"] if is_required else []
    return ", ".join(texts)
