"""Writes the part of the description that the local control plane checks requests with."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from neonctl_local.api.description import published
from neonctl_local.api.description.published import Endpoint, Parameter, Schema
from tests.contract.derived import METHODS
from tests.contract.description import FOLDER, OLDER_PACKAGE, Description
from tests.contract.typescript import SDK

KEPT = frozenset(
    {
        *("type", "format", "enum", "nullable", "minimum", "maximum", "minLength", "maxLength"),
        *("pattern", "minItems", "maxItems", "maxProperties", "required"),
    }
)
DROPPED = frozenset(
    {
        *("description", "example", "default", "deprecated", "title"),
        *("x-tags", "x-sensitive", "x-sunset", "x-stability-level"),
    }
)


class Compactor:
    """Reduces the schemas of a description, and collects those that requests refer to."""

    # Any: parts of a YAML document.
    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self.schemas: dict[str, Schema] = {}

    def endpoint(self, parameters: list[dict[str, Any]], operation: dict[str, Any]) -> Endpoint:
        """Return an endpoint with its query parameters and the schema of its JSON body."""
        body = self._resolved(operation.get("requestBody", {}))
        resolved = [self._resolved(parameter) for parameter in parameters]
        return Endpoint(
            stability=operation.get("x-stability-level", ""),
            query={
                parameter["name"]: Parameter(
                    required=parameter.get("required", False),
                    schema=self.schema(parameter["schema"]),
                )
                for parameter in resolved
                if parameter["in"] == "query"
            },
            body=self._body(body["content"]) if body else UNSET,
            body_required=body.get("required", False),
        )

    def schema(self, schema: Mapping[str, Any]) -> Schema:
        """Return a schema without descriptions. Unknown keywords fail."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            if name not in self.schemas:
                self.schemas[name] = self.schema(self._resolved(schema))
            return Schema(ref=name)
        if "oneOf" in schema:
            return self._either(schema["oneOf"])
        if "allOf" in schema:
            return self._merged(schema)
        inner = {"properties", "additionalProperties", "items"}
        unknown = schema.keys() - KEPT - DROPPED - inner
        assert not unknown, f"unknown keywords: {unknown}"
        reduced: dict[str, Any] = {name: schema[name] for name in KEPT & schema.keys()}
        for name in inner - {"properties"}:
            if isinstance(schema.get(name), dict):
                reduced[name] = self.schema(schema[name])
        properties = schema.get("properties", {})
        reduced["properties"] = {name: self.schema(part) for name, part in properties.items()}
        return msgspec.convert(reduced, Schema, from_attributes=True)

    def _either(self, alternatives: Sequence[Mapping[str, Any]]) -> Schema:
        """Return an object with the fields of all alternatives. The handler checks the rest."""
        parts = [self.schema(self._resolved(part)) for part in alternatives]
        properties: dict[str, Schema] = {}
        for part in parts:
            for name, inner in part.properties.items():
                enum = [*properties.get(name, Schema()).enum, *inner.enum]
                properties[name] = msgspec.structs.replace(inner, enum=list(dict.fromkeys(enum)))
        required = [
            name for name in parts[0].required if all(name in part.required for part in parts)
        ]
        return Schema(type="object", required=required, properties=properties)

    def _merged(self, schema: Mapping[str, Any]) -> Schema:
        parts = [self._resolved(part) for part in schema["allOf"]]
        assert all(part.keys() <= {"type", "properties", "required"} | DROPPED for part in parts)
        return self.schema(
            {
                "type": "object",
                "required": [name for part in parts for name in part.get("required", [])],
                "properties": {
                    name: inner for part in parts for name, inner in part["properties"].items()
                },
            }
        )

    def _body(self, content: Mapping[str, Any]) -> Schema:
        json_content = content.get("application/json")
        return (
            Schema(type="object") if json_content is None else self.schema(json_content["schema"])
        )

    def _resolved(self, part: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in part:
            found = self._document
            for name in part["$ref"].split("/")[1:]:
                found = found[name]
            part = found
        return part


def version_of(package: str, folder: Path = FOLDER) -> str:
    """Return the name, version and license of an npm package."""
    file = folder / "node_modules" / package / "package.json"
    facts = msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
    return f"npm package {package} {facts['version']}, license {facts['license']}"


def license_text(folder: Path = FOLDER) -> str:
    """Return the licenses of the packages that the description comes from."""
    return "\n\n".join(
        f"endpoints.json is derived from the {version_of(package, folder)}:\n\n"
        + (folder / "node_modules" / package / "LICENSE").read_text(encoding="utf-8")
        for package in (SDK, OLDER_PACKAGE)
    )


def compact(description: Description) -> str:
    """Return the text of the file, with one endpoint or schema per line."""
    compactor = Compactor(description.document)
    endpoints = {
        f"{method.upper()} {path}": compactor.endpoint(
            item.get("parameters", []) + item[method].get("parameters", []), item[method]
        )
        for path, item in description.document["paths"].items()
        for method in METHODS
        if method in item
    }
    head = {
        "source": version_of(SDK),
        "restrictions": version_of(OLDER_PACKAGE),
        "license": published.LICENSE_FILE.name,
    }
    lines = [f"  {_json(name)}: {_json(value)}," for name, value in head.items()]
    lines += _section("endpoints", endpoints)
    lines += _section("schemas", compactor.schemas)
    lines[-1] = lines[-1].removesuffix(",")
    return "\n".join(["{", *lines, "}"]) + "\n"


def write(description: Description) -> None:
    """Write the file and the license of its source."""
    published.FILE.write_text(compact(description), encoding="utf-8")
    published.LICENSE_FILE.write_text(license_text(), encoding="utf-8")


def _section(name: str, parts: Mapping[str, object]) -> Iterator[str]:
    yield f"  {_json(name)}: {{"
    last = list(parts)[-1]
    for key in parts:
        comma = "" if key == last else ","
        yield f"    {_json(key)}: {_json(parts[key])}{comma}"
    yield "  },"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
