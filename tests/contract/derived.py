"""Derives the newest description of the API from Neon's TypeScript SDK.

The types of the SDK have no limits, formats and patterns, and one type for all numbers. Those come
from the older description, for everything that both of them have.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from neonctl_async.transport.encoding import Json
from tests.contract.known import (
    FRACTIONS,
    TIMESTAMPS,
    UNPUBLISHED,
    UNPUBLISHED_PARAMETERS,
)
from tests.contract.typescript import SdkEndpoint, TypeScriptSdk, UnknownFormError

# Any: parts of a JSON document.
Part: TypeAlias = dict[str, Any]

METHODS = ("get", "post", "put", "patch", "delete")
_DEFINITION, _COMPONENT = "#/definitions/", "#/components/schemas/"
_SUFFIXES = ("Data", "Response", "Responses", "Error", "Errors")
_RESTRICTIONS = (
    *("format", "default", "example", "minimum", "maximum", "exclusiveMinimum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "minItems", "maxItems", "maxProperties"),
)
_KNOWN = frozenset(
    (
        *("$ref", "type", "enum", "const", "anyOf", "properties", "required", "items"),
        *("additionalProperties", "description", "deprecated"),
    )
)
"""The keywords of JSON Schema that the derivation reads."""
_BINARY: Part = {"type": "string", "format": "binary"}


class Derivation:
    """Builds an OpenAPI document from the SDK. ``older`` is the older description."""

    def __init__(self, sdk: TypeScriptSdk, older: Part) -> None:
        self._sdk = sdk
        self._older = older
        self._older_names = {_plain(name): name for name in older["components"]["schemas"]}
        self._schemas: dict[str, Part] = {}
        self._restricted: set[str] = set()

    def document(self) -> Part:
        """Return the document."""
        paths: dict[str, Part] = {}
        for endpoint in self._sdk.endpoints():
            paths.setdefault(endpoint.path, {})[endpoint.method] = self._operation(endpoint)
        for name in list(self._schemas):
            self._restrict_component(name)
        for name in UNPUBLISHED:
            verb, _, path = name.partition(" ")
            method = verb.lower()
            if method in self._older["paths"].get(path, {}):
                paths.setdefault(path, {}).setdefault(method, self._unpublished(method, path))
        return {
            "openapi": "3.0.3",
            "info": {"title": "Neon API", "version": self._sdk.version},
            "servers": self._older["servers"],
            "security": [{"BearerAuth": []}],
            "paths": paths,
            "components": {
                "securitySchemes": {"BearerAuth": {"type": "http", "scheme": "bearer"}},
                "schemas": self._schemas,
            },
        }

    def _operation(self, endpoint: SdkEndpoint) -> Part:
        older = self._older_operation(endpoint)
        data = self._sdk.types_of(endpoint, "Data")
        operation: Part = {
            "operationId": endpoint.name,
            "parameters": [
                parameter
                for place in ("path", "query")
                for parameter in self._parameters(
                    place, data.get(place), older, UNPUBLISHED_PARAMETERS.get(str(endpoint), {})
                )
            ],
            "responses": dict(self._responses(endpoint, older)),
        }
        if endpoint.is_deprecated:
            operation["deprecated"] = True
        stability = (older.get("x-stability-level") if older else "") or endpoint.stability
        if stability and stability != "stable":
            operation["x-stability-level"] = stability
        if "body" in data:
            media_type = "multipart/form-data" if endpoint.is_form else "application/json"
            schema = self._schema(data["body"])
            self._restrict(schema, _content_of(self._resolved(older.get("requestBody"))))
            operation["requestBody"] = {
                "required": "body" in self._sdk.required_types_of(endpoint),
                "content": {media_type: {"schema": schema}},
            }
        return operation

    def _unpublished(self, method: str, path: str) -> Part:
        """Return an operation of the older description that the SDK lacks."""
        operation = self._copied(self._older["paths"][path][method])
        operation["parameters"] = [
            *map(self._resolved, self._older["paths"][path].get("parameters", [])),
            *map(self._resolved, operation.get("parameters", [])),
        ]
        return {**operation, "x-stability-level": "unpublished"}

    def _copied(self, part: Json) -> Any:
        """Return a part of the older description with references to the schemas of this one."""
        match part:
            case {"$ref": str(reference)} if not reference.startswith(_COMPONENT):
                return self._copied(self._resolved({"$ref": reference}))
            case {"$ref": str(reference)}:
                older = reference.removeprefix(_COMPONENT)
                names = {_plain(name): name for name in self._schemas}
                if _plain(older) not in names:
                    self._schemas[older] = self._copied(self._older["components"]["schemas"][older])
                return {"$ref": f"{_COMPONENT}{names.get(_plain(older), older)}"}
            case dict():
                return {name: self._copied(value) for name, value in part.items()}
            case list():
                return [self._copied(value) for value in part]
            case _:
                return part

    def _parameters(
        self, place: str, schema: Part | None, older: Part, kept: Mapping[str, str]
    ) -> Iterator[Part]:
        older_parameters = {
            parameter["name"]: parameter
            for parameter in map(self._resolved, older.get("parameters", []))
        }
        for name, inner in (schema or {"properties": {}})["properties"].items():
            found = older_parameters.get(name, {})
            derived = self._schema(inner, name)
            self._restrict(derived, found.get("schema"))
            yield {
                "name": name,
                "in": place,
                "required": place == "path" or name in (schema or {}).get("required", []),
                "deprecated": bool(inner.get("deprecated")),
                "schema": derived,
                # A list is sent as one parameter per item, or with commas, as published before.
                **{key: found[key] for key in ("style", "explode") if key in found},
            }
        yield from (
            parameter
            for parameter in older_parameters.values()
            if parameter["in"] == place and parameter["name"] in kept
        )

    def _responses(self, endpoint: SdkEndpoint, older: Part) -> Iterator[tuple[str, Part]]:
        published = {str(code): part for code, part in older.get("responses", {}).items()}
        types = {
            **self._sdk.types_of(endpoint, "Responses"),
            **self._sdk.types_of(endpoint, "Errors"),
        }
        for code, part in types.items():
            key = "default" if code == "4XX" else code
            response: Part = {"description": part.get("description", "")}
            schema = self._schema({**part, "description": ""})
            before = self._resolved(published.get(key))
            if schema not in ({}, {"type": "null"}):
                self._restrict(schema, _content_of(before))
                media_type = "application/octet-stream" if schema == _BINARY else "application/json"
                examples = _examples_of(before)
                response["content"] = {media_type: {"schema": schema, **examples}}
            yield key, response

    def _schema(self, schema: Part, name: str = "") -> Part:
        """Return a schema in the form of OpenAPI 3.0. ``name`` is that of the property."""
        _check_form(schema, name)
        if "$ref" in schema:
            return {"$ref": self._component(schema["$ref"].removeprefix(_DEFINITION))}
        kept = {
            key: schema[key] for key in ("type", "enum", "deprecated", "required") & schema.keys()
        }
        if "const" in schema:
            kept["enum"] = [schema["const"]]
        if isinstance(schema.get("type"), list):
            [kept["type"]] = set(schema["type"]) - {"null"}
            kept["nullable"] = True
        if "anyOf" in schema:
            return self._union(schema["anyOf"], name)
        if "properties" in schema:
            kept["properties"] = {
                key: self._schema(inner, key) for key, inner in schema["properties"].items()
            }
        if "items" in schema:
            kept["items"] = self._schema(schema["items"], name)
        if schema.get("additionalProperties"):
            kept["additionalProperties"] = self._schema(schema["additionalProperties"])
        return _with_format(kept, name, schema.get("description", ""))

    def _union(self, parts: list[Part], name: str) -> Part:
        others = [part for part in parts if part.get("type") != "null"]
        if _is_file(others[0]):
            return dict(_BINARY)
        if len(others) > 1:
            return {"oneOf": [self._schema(part) for part in others]}
        schema = self._schema(others[0], name)
        if "$ref" in schema:
            schema = {"allOf": [schema]}
        return {**schema, "nullable": True}

    def _component(self, name: str) -> str:
        if name not in self._schemas:
            self._schemas[name] = {}
            self._schemas[name].update(self._schema(self._sdk.types[name], name))
        return f"{_COMPONENT}{name}"

    def _restrict_component(self, name: str) -> None:
        if name in self._restricted:
            return
        self._restricted.add(name)
        older = self._older_names.get(_plain(name))
        if older:
            self._restrict(self._schemas[name], self._older["components"]["schemas"][older])

    def _restrict(self, schema: Part, older: Part | None) -> None:
        """Copy the limits of the older schema to the parts that both schemas have."""
        before = self._merged(older)
        if "$ref" in schema:
            self._restrict_component(schema["$ref"].removeprefix(_COMPONENT))
            return
        if "oneOf" in schema:
            return
        if schema.get("type") in {"number", "integer"} and before.get("type"):
            schema["type"] = before["type"]
            schema.pop("format", None)
        if before.get("type") == schema.get("type"):
            schema |= {key: before[key] for key in _RESTRICTIONS if key in before}
            if schema.get("type") == "string" and "format" not in before:
                schema.pop("format", None)
        for name, inner in schema.get("properties", {}).items():
            self._restrict(inner, before.get("properties", {}).get(name))
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict) and isinstance(before.get(key), dict):
                self._restrict(schema[key], before[key])

    def _merged(self, schema: Part | None) -> Part:
        """Return an older schema with its reference resolved and its parts merged."""
        resolved = self._resolved(schema)
        if "allOf" not in resolved:
            return resolved
        parts = [self._merged(part) for part in resolved["allOf"]]
        merged = {key: value for part in parts for key, value in part.items()}
        properties = {
            name: inner for part in parts for name, inner in part.get("properties", {}).items()
        }
        return {**merged, "properties": properties} if properties else merged

    def _resolved(self, part: Part | None) -> Part:
        found = part or {}
        while "$ref" in found:
            reference = found["$ref"].split("/")[1:]
            found = self._older
            for name in reference:
                found = found[name]
        return found

    def _older_operation(self, endpoint: SdkEndpoint) -> Part:
        item = self._older["paths"].get(endpoint.path, {})
        if endpoint.method not in item:
            return {}
        operation: Part = dict(item[endpoint.method])
        operation["parameters"] = item.get("parameters", []) + operation.get("parameters", [])
        return operation


def _check_form(schema: Part, name: str) -> None:
    """Raise UnknownFormError for a type in a form that no version of the SDK had before."""
    unknown = schema.keys() - _KNOWN
    if unknown:
        raise UnknownFormError(f"the type of {name!r} has the unknown keyword {min(unknown)}")
    if isinstance(schema.get("type"), list):
        types: list[str] = schema["type"]
        if "null" not in types or len(types) != 2:
            raise UnknownFormError(f"the type of {name!r} is {' or '.join(types)}")


def _with_format(schema: Part, name: str, text: str) -> Part:
    """Add the formats and limits that only the names and the texts of the SDK state."""
    if schema.get("type") == "number" and name not in FRACTIONS:
        schema["type"] = "integer"
    is_time = name.endswith("_at") or name in TIMESTAMPS
    if schema.get("type") == "string" and is_time and "enum" not in schema:
        schema["format"] = "date-time"
    limits = re.search(r"Specify a value from (\d+) to (\d+)", text)
    if limits and schema.get("type") == "integer":
        schema |= {"minimum": int(limits[1]), "maximum": int(limits[2])}
    return schema


def _is_file(schema: Part) -> bool:
    """Return whether a schema is the type ``Blob`` of browsers."""
    is_blob = set(schema.get("properties", {})) == {"size", "type"}
    return is_blob or schema.get("$ref") == f"{_DEFINITION}Blob"


def _content_of(part: Part) -> Part | None:
    """Return the schema of a body as published."""
    contents = part.get("content", {}).values()
    return next((content.get("schema") for content in contents), None)


def _examples_of(part: Part) -> Part:
    """Return the documented examples of a body."""
    contents: list[Part] = list(part.get("content", {}).values())
    return {
        key: content[key]
        for content in contents[:1]
        for key in ("example", "examples")
        if key in content
    }


def _plain(name: str) -> str:
    """Return the name of a schema without the differences between the descriptions."""
    return name.replace("_", "").lower()
