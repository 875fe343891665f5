"""msgspec types for published schemas. A value that msgspec accepts matches the schema."""

from collections.abc import Callable, Mapping
from datetime import datetime
from types import GenericAlias
from typing import Annotated, Any, Final, TypeAlias
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from neonctl_local.api.description.published import Schema
from neonctl_local.api.request import formats

Kind: TypeAlias = Any
"""A type for msgspec. It is not always a class."""

_RANGES: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_FORMATS: Final[Mapping[str, Kind]] = {
    "date-time": Annotated[datetime, Meta(tz=True)],
    "uuid": UUID,
}

_PATTERNS: Final = {"email": formats.EMAIL, "uri": formats.URI}


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
        # Properties such as "from" are no identifiers, so the attributes have other names.
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
        return _limited(str, pattern=formats.one_of(schema.enum))
    pattern = schema.pattern and formats.to_the_end(schema.pattern)
    if schema.format in _PATTERNS:
        pattern = _PATTERNS[schema.format]
    return _limited(
        str, min_length=schema.min_length, max_length=schema.max_length, pattern=pattern
    )


def _limited(kind: Kind, **limits: float | str | None) -> Kind:
    given: dict[str, Any] = {name: limit for name, limit in limits.items() if limit is not None}
    return Annotated[kind, Meta(**given)] if given else kind
