"""Checks requests against the published description, before they are handled.

Each schema is converted to a type. If msgspec accepts a value as the type, the value matches the
schema.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from types import GenericAlias
from typing import Annotated, Any, Final, TypeAlias
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from neonctl_local.api.description.published import Endpoint, Schema, description
from neonctl_local.api.request.decoding import (
    EMAIL,
    URI,
    decode,
    describe_problem,
    one_of,
    to_the_end,
)
from neonctl_local.errors import invalid

Kind: TypeAlias = Any
"""A type for msgspec. It is not always a class."""

_RANGES: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_FORMATS: Final[Mapping[str, Kind]] = {
    "date-time": Annotated[datetime, Meta(tz=True)],
    "uuid": UUID,
}

_PATTERNS: Final = {"email": EMAIL, "uri": URI}
_ROLE: Final = "/projects/{project_id}/branches/{branch_id}/roles/{role_name}"
_BRANCH: Final = "/projects/{project_id}/branches/{branch_id}"

UNPUBLISHED: Final[Mapping[str, str]] = {
    f"POST {_BRANCH}/set_as_primary": f"POST {_BRANCH}/set_as_default",
    f"POST {_ROLE}/reveal_password": f"GET {_ROLE}/reveal_password",
}
"""The routes that only neon-api 0.3.0 calls, and the published endpoints that replaced them."""

_INTEGER: Final = re.compile(r"-?[0-9]{1,20}")
_BOOLEANS: Final = {"true": True, "false": False, "True": True, "False": False}
"""The spellings of a boolean. neon-api 0.3.0 sends ``True`` and ``False``."""


class Types:
    """The types for the schemas of a description. Each named schema is converted once."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas
        self._named: dict[str, Kind] = {}
        self._builders: Mapping[str, Callable[[Schema], Kind]] = {
            "array": self._array,
            "boolean": lambda _: bool,
            "integer": _integer,
            "number": lambda schema: _limited(float, ge=schema.minimum, le=schema.maximum),
            "object": self._object,
            "string": _string,
        }

    def of(self, schema: Schema) -> Kind:
        """Return the type of a schema."""
        if schema.ref:
            if schema.ref not in self._named:
                self._named[schema.ref] = self.of(self._schemas[schema.ref])
            return self._named[schema.ref]
        kind = self._builders[schema.type](schema)
        return kind | None if schema.nullable else kind

    def resolved(self, schema: Schema) -> Schema:
        """Return the schema that a reference points to."""
        return self._schemas[schema.ref] if schema.ref else schema

    def _array(self, schema: Schema) -> Kind:
        items = object if isinstance(schema.items, UnsetType) else self.of(schema.items)
        kind = GenericAlias(list, (items,))
        return _limited(kind, min_length=schema.min_items, max_length=schema.max_items)

    def _object(self, schema: Schema) -> Kind:
        if not isinstance(schema.additional_properties, UnsetType):
            kind = GenericAlias(dict, (str, self.of(schema.additional_properties)))
            return _limited(kind, max_length=schema.max_properties)
        # Properties such as "from" are not valid identifiers, so the attributes have other names.
        attributes = {f"_{number}": name for number, name in enumerate(schema.properties)}
        fields: list[Any] = []
        for attribute, name in attributes.items():
            kind = self.of(schema.properties[name])
            required = name in schema.required
            fields.append((attribute, kind) if required else (attribute, kind | UnsetType, UNSET))
        return msgspec.defstruct("Object", fields, rename=attributes, kw_only=True, gc=False)


def _integer(schema: Schema) -> Kind:
    lowest, highest = _RANGES[schema.format or "int64"]
    return _limited(
        int,
        ge=lowest if schema.minimum is None else schema.minimum,
        le=highest if schema.maximum is None else schema.maximum,
    )


def _string(schema: Schema) -> Kind:
    if schema.format in _FORMATS:
        return _FORMATS[schema.format]
    if schema.enum:
        return _limited(str, pattern=one_of(schema.enum))
    pattern = schema.pattern and to_the_end(schema.pattern)
    if schema.format in _PATTERNS:
        pattern = _PATTERNS[schema.format]
    return _limited(
        str, min_length=schema.min_length, max_length=schema.max_length, pattern=pattern
    )


def _limited(kind: Kind, **limits: float | str | None) -> Kind:
    given: dict[str, Any] = {name: limit for name, limit in limits.items() if limit is not None}
    return Annotated[kind, Meta(**given)] if given else kind


class RequestChecker:
    """Checks requests for one endpoint."""

    def __init__(self, name: str, endpoint: Endpoint, types: Types) -> None:
        self._name = name
        self._parameters = endpoint.query
        self._schemas: dict[str, Schema] = {}
        self._kinds: dict[str, Kind] = {}
        for parameter_name, parameter in endpoint.query.items():
            self._schemas[parameter_name] = types.resolved(parameter.schema)
            self._kinds[parameter_name] = types.of(parameter.schema)
        self._body_required = endpoint.body_required
        self._body: Kind = None if isinstance(endpoint.body, UnsetType) else types.of(endpoint.body)

    def check(self, query: Iterable[tuple[str, str]], content: bytes) -> None:
        """Raise 400 if a parameter or field is invalid, naming the first one."""
        self._check_query(query)
        if self._body is not None:
            decode(content, self._body)
            if self._body_required and not content:
                raise invalid("invalid request: body: send a JSON body, at least {}")
        elif content:
            raise invalid(f"invalid request: body: {self._name} takes no body: send none")

    def _check_query(self, query: Iterable[tuple[str, str]]) -> None:
        given: dict[str, list[str]] = defaultdict(list)
        for name, text in query:
            if name in self._parameters:
                given[name].append(text)
        for name, texts in given.items():
            self._check_parameter(name, texts)
        for name, parameter in self._parameters.items():
            if parameter.required and name not in given:
                raise invalid(f"invalid request: {name}: query parameter required")

    def _check_parameter(self, name: str, texts: list[str]) -> None:
        schema = self._schemas[name]
        if schema.type != "array" and len(texts) > 1:
            raise invalid(f"invalid request: {name}: given {len(texts)} times: send it once")
        value = texts if schema.type == "array" else _value(schema, texts[0])
        try:
            msgspec.convert(value, self._kinds[name])
        except msgspec.ValidationError as error:
            problem = describe_problem(error).removesuffix(", got `str`")
            shown = ",".join(texts)
            raise invalid(f"invalid request: {name}: {shown!r} is invalid: {problem}") from None


def check_request(route: str, query: Iterable[tuple[str, str]], content: bytes) -> None:
    """Check the query parameters and the body of a request for a route.

    Unknown parameters are ignored, like unknown fields. Raise 400 if a parameter or field is
    invalid, naming it. A route that is not published is not checked.
    """
    checker = _checker(route)
    if checker is not None:
        checker.check(query, content)


@cache
def _checker(route: str) -> RequestChecker | None:
    endpoint = description().endpoints.get(UNPUBLISHED.get(route, route))
    return None if endpoint is None else RequestChecker(route, endpoint, _types())


@cache
def _types() -> Types:
    return Types(description().schemas)


def _value(schema: Schema, text: str) -> object:
    """Return the value of a query parameter, or its text if it cannot be converted."""
    if schema.type == "integer" and _INTEGER.fullmatch(text):
        return int(text)
    if schema.type == "boolean":
        return _BOOLEANS.get(text, text)
    return text
