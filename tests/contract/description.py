"""The parts of the published API description that the contract tests need."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from tests.contract.derived import METHODS, Derivation
from tests.contract.typescript import TypeScriptSdk

FOLDER = Path(__file__).parents[2] / ".contract"
"""The folder of the Node.js packages that ``make contract`` installs."""
OLDER_PACKAGE = "@neondatabase/api-client"
"""The package with the older description, which has limits and formats."""

Code: TypeAlias = int | str


class Schema(Struct, frozen=True, kw_only=True):
    """A schema as published, with unresolved references and parts."""

    ref: str = field(name="$ref", default="")
    type: str = ""
    format: str = ""
    enum: list[Any] = []
    nullable: bool = False
    deprecated: bool = False
    maximum: float | None = None
    required: list[str] = []
    properties: dict[str, "Schema"] = {}
    items: "Schema | UnsetType" = UNSET
    parts: list["Schema"] = field(name="allOf", default_factory=list["Schema"])
    alternatives: list["Schema"] = field(name="oneOf", default_factory=list["Schema"])
    values: "Schema | bool" = field(name="additionalProperties", default=False)


class Parameter(Struct, frozen=True, kw_only=True):
    """A parameter of a path or a query, or a reference to one."""

    ref: str = field(name="$ref", default="")
    name: str = ""
    place: str = field(name="in", default="")
    required: bool = False
    deprecated: bool = False
    schema: Schema = Schema()


class Content(Struct, frozen=True, kw_only=True):
    """A body of one media type."""

    schema: Schema = Schema()


class Body(Struct, frozen=True, kw_only=True):
    """The body of a request or a response, or a reference to one."""

    ref: str = field(name="$ref", default="")
    content: dict[str, Content] = {}


class _Operation(Struct, frozen=True, kw_only=True):
    id: str = field(name="operationId")
    deprecated: bool = False
    stability: str = field(name="x-stability-level", default="")
    parameters: list[Parameter] = []
    body: Body | UnsetType = field(name="requestBody", default=UNSET)
    responses: dict[Code, Body] = {}


class _Path(Struct, frozen=True, kw_only=True):
    parameters: list[Parameter] = []
    get: _Operation | UnsetType = UNSET
    post: _Operation | UnsetType = UNSET
    put: _Operation | UnsetType = UNSET
    patch: _Operation | UnsetType = UNSET
    delete: _Operation | UnsetType = UNSET


class _Components(Struct, frozen=True, kw_only=True):
    schemas: dict[str, Schema]
    parameters: dict[str, Parameter] = {}
    responses: dict[str, Body] = {}


class _Document(Struct, frozen=True, kw_only=True):
    paths: dict[str, _Path]
    components: _Components


class Endpoint(Struct, frozen=True, kw_only=True):
    """A method on a path, with references resolved. ``str()`` is ``GET /projects/{project_id}``."""

    method: str
    path: str
    deprecated: bool
    stability: str
    query: dict[str, Parameter]
    body: Schema | None
    responses: dict[int, Body]
    """The responses of success, by status."""
    error_statuses: list[int]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def matches(self, method: str, path: str) -> bool:
        """Return whether a request matches the endpoint. It may match others as well."""
        return method == self.method and re.fullmatch(self._pattern, path) is not None

    def ids_in(self, path: str) -> Mapping[str, str]:
        """Return the parameters in a path that matches this endpoint."""
        match = re.fullmatch(self._pattern, path)
        assert match
        return match.groupdict()

    @property
    def _pattern(self) -> str:
        return re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", self.path)


class Description:
    """A description with its references resolved."""

    # Any: a JSON document.
    def __init__(self, document: dict[str, Any], version: str) -> None:
        self.document = document
        self.version = version
        converted = msgspec.convert(document, _Document)
        self._components = converted.components
        self.endpoints = [
            self._endpoint(method, path, item, operation)
            for path, item in converted.paths.items()
            for method in METHODS
            if not isinstance(operation := getattr(item, method), UnsetType)
        ]

    @classmethod
    def newest(cls, folder: Path = FOLDER) -> "Description":
        """Return the description that is derived from Neon's TypeScript SDK."""
        assert (folder / "types.json").exists(), f"{folder} is incomplete: run make contract"
        sdk = TypeScriptSdk(folder)
        return cls(Derivation(sdk, _older_document(folder)).document(), sdk.version)

    @classmethod
    def older(cls, folder: Path = FOLDER) -> "Description":
        """Return the description that Neon published last as a document."""
        package = folder / "node_modules" / OLDER_PACKAGE / "package.json"
        version = str(msgspec.json.decode(package.read_bytes())["version"])
        return cls(_older_document(folder), version)

    def write(self, file: Path) -> None:
        """Write the document as JSON, for programs that read files."""
        file.write_bytes(msgspec.json.encode(self.document))

    def endpoint_of(self, method: str, path: str) -> Endpoint | None:
        """Return the matching endpoint with the fewest parameters."""
        matching = [endpoint for endpoint in self.endpoints if endpoint.matches(method, path)]
        return min(matching, key=lambda endpoint: endpoint.path.count("{"), default=None)

    def response_schema(self, endpoint: Endpoint, status: Code) -> dict[str, Any]:
        """Return the schema of a JSON response as published."""
        responses = self.document["paths"][endpoint.path][endpoint.method.lower()]["responses"]
        response = responses[status] if status in responses else responses[str(status)]
        if "$ref" in response:
            response = self.document["components"]["responses"][_name(response["$ref"])]
        [content] = response["content"].values()
        schema: dict[str, Any] = content["schema"]
        return schema

    def resolve(self, schema: Schema) -> Schema:
        """Return the schema with its reference resolved and its parts merged."""
        if schema.ref:
            return self.resolve(self._components.schemas[_name(schema.ref)])
        merged = self._either(schema) if schema.alternatives else schema
        for part in map(self.resolve, schema.parts):
            merged = Schema(
                type=merged.type or part.type,
                format=merged.format or part.format,
                enum=merged.enum or part.enum,
                nullable=merged.nullable or part.nullable,
                deprecated=merged.deprecated or part.deprecated,
                required=merged.required + part.required,
                properties={**merged.properties, **part.properties},
                items=merged.items or part.items,
                values=merged.values or part.values,
            )
        return merged

    def _either(self, schema: Schema) -> Schema:
        """Return a schema with the properties of all alternatives of a union."""
        alternatives = list(map(self.resolve, schema.alternatives))
        properties: dict[str, Schema] = {}
        for alternative in alternatives:
            for name, inner in alternative.properties.items():
                values = [*properties.get(name, Schema()).enum, *inner.enum]
                properties[name] = msgspec.structs.replace(inner, enum=list(dict.fromkeys(values)))
        required = [
            name
            for name in alternatives[0].required
            if all(name in part.required for part in alternatives)
        ]
        return Schema(
            type=alternatives[0].type,
            nullable=schema.nullable,
            required=required,
            properties=properties,
        )

    def _endpoint(self, method: str, path: str, item: _Path, operation: _Operation) -> Endpoint:
        parameters = list(map(self._parameter, item.parameters + operation.parameters))
        body = None if isinstance(operation.body, UnsetType) else operation.body
        return Endpoint(
            method=method.upper(),
            path=path,
            deprecated=operation.deprecated,
            stability=operation.stability,
            query={
                parameter.name: parameter for parameter in parameters if parameter.place == "query"
            },
            body=schema_of(body) if body else None,
            responses={
                int(code): self._response(response)
                for code, response in operation.responses.items()
                if str(code).startswith("2")
            },
            error_statuses=[
                int(code) for code in operation.responses if str(code).startswith(("4", "5"))
            ],
        )

    def _parameter(self, parameter: Parameter) -> Parameter:
        if parameter.ref:
            return self._components.parameters[_name(parameter.ref)]
        return parameter

    def _response(self, response: Body) -> Body:
        return self._components.responses[_name(response.ref)] if response.ref else response


def schema_of(body: Body) -> Schema | None:
    """Return the schema of a JSON body, or None for an empty body."""
    return next((content.schema for content in body.content.values()), None)


def _older_document(folder: Path) -> dict[str, Any]:
    file = folder / "node_modules" / OLDER_PACKAGE / "public-v2-for-users.gen.yaml"
    document: dict[str, Any] = msgspec.yaml.decode(file.read_bytes())
    return document


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]
