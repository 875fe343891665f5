"""The published description, narrowed to existing ids and to the rules of rules.py."""

from collections.abc import Mapping
from typing import Any

from control_plane.tests.conformance.published.plane import Plane
from control_plane.tests.conformance.published.rules import (
    CLOSED,
    EXCLUDED,
    FIELDS,
    OF_OPERATION,
    PARAMETERS,
    JsonSchema,
    Rule,
)
from neonctl_async.transport.encoding import Json
from tests.contract.description import Description
from tests.contract.populated import Names

METHODS = ("get", "post", "put", "patch", "delete")


def narrowed(description: Description, plane: Plane) -> dict[str, Any]:
    """Return a description whose valid requests the local control plane accepts."""
    document = description.document
    resolve = _Resolver(document["components"])
    paths: dict[str, Any] = {}
    for path, item in document["paths"].items():
        for method in item.keys() & METHODS:
            name = f"{method.upper()} {path}"
            narrow = _Narrow(name, plane.names(name), resolve)
            operation = narrow.operation(item[method], item.get("parameters", []))
            paths.setdefault(path, {})[method] = operation
    return document | {"paths": paths, "security": [{"BearerAuth": []}]}


class _Resolver:
    """Copies parts of a description with references resolved, so that each can be narrowed."""

    def __init__(self, components: Mapping[str, Any]) -> None:
        self._components = components

    def __call__(self, part: Json) -> Any:
        match part:
            case {"$ref": str(reference)}:
                kind, _, name = reference.removeprefix("#/components/").partition("/")
                return self(self._components[kind][name])
            case dict():
                resolved = {name: self(value) for name, value in part.items()}
                return _merged(resolved) if "allOf" in resolved else resolved
            case list():
                return [self(item) for item in part]
            case _:
                return part


def _merged(schema: JsonSchema) -> JsonSchema:
    """Return a schema with the keywords of its parts instead of ``allOf``."""
    merged: JsonSchema = {}
    for part in [*schema["allOf"], schema]:
        properties = merged.get("properties", {}) | part.get("properties", {})
        required = [*merged.get("required", []), *part.get("required", [])]
        merged |= part
        merged |= {"properties": properties} if properties else {}
        merged |= {"required": required} if required else {}
    del merged["allOf"]
    return merged


class _Narrow:
    """Narrows the parameters and the body of an operation."""

    def __init__(self, name: str, names: Names, resolve: _Resolver) -> None:
        self._name = name
        self._existing = _identifying(names)
        self._resolve = resolve

    def operation(self, published: JsonSchema, shared: list[Any]) -> JsonSchema:
        parameters = self._resolve([*shared, *published.get("parameters", [])])
        operation: JsonSchema = published | {"parameters": parameters}
        for parameter in parameters:
            rules: Mapping[str, Rule] = PARAMETERS if parameter["in"] == "query" else {}
            if self._add(parameter["schema"], parameter["name"], rules):
                parameter.pop("example", None)
        if "requestBody" in published:
            operation["requestBody"] = self._resolve(published["requestBody"])
            for content in operation["requestBody"]["content"].values():
                self._fields(content["schema"])
                if self._name in CLOSED:
                    content["schema"]["additionalProperties"] = False
        return operation

    def _fields(self, schema: JsonSchema, parent: str = "") -> None:
        if "items" in schema:
            self._fields(schema["items"], parent)
        for name, inner in list(schema.get("properties", {}).items()):
            if name in EXCLUDED:
                del schema["properties"][name]
            elif not self._add(inner, name, FIELDS, parent):
                self._fields(inner, name)

    def _add(
        self, schema: JsonSchema, name: str, rules: Mapping[str, Rule], parent: str = ""
    ) -> bool:
        """Narrow a schema by the rule of its name. Return whether there is one."""
        if "items" in schema:  # project_ids: the ids of existing projects
            return self._add(schema["items"], name.removesuffix("s"), {})
        own = (f"{self._name}: {parent}.{name}", f"{self._name}: {name}")
        rule = OF_OPERATION.get(own[0]) or OF_OPERATION.get(own[1]) or rules.get(name)
        keywords = rule.schema if rule else self._existing.get(name)
        if keywords is None or "properties" in schema:
            return False
        if "pattern" in keywords:  # the pattern of a rule replaces a published format
            schema.pop("format", None)
        schema.update(keywords)
        schema.pop("example", None)
        if "enum" in keywords and schema.get("nullable"):
            schema["enum"] = [*keywords["enum"], None]
        return True


def _identifying(names: Names) -> Mapping[str, JsonSchema]:
    """Return the schemas of the parameters and fields that identify existing objects."""
    existing = {
        **names,
        "base_branch_id": names["branch_id"],
        "parent_id": names["source_branch_id"],
        "target_branch_id": names["branch_id"],
    }
    return {
        name: {"enum": [value]} for name, value in existing.items() if isinstance(value, str | int)
    }
