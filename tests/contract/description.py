"""The published description of the API, as far as the contract tests need it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

FOLDER = Path(__file__).parents[2] / ".contract"
"""The folder of the Node.js packages that ``make contract`` installs."""
PACKAGE = "@neondatabase/api-client"

Code: TypeAlias = int | str


class Schema(Struct, frozen=True, kw_only=True):
    """A schema as it is written: with references and parts."""

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
    tags: list[str] = []
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
    parameters: dict[str, Parameter]
    responses: dict[str, Body]


class _Document(Struct, frozen=True, kw_only=True):
    paths: dict[str, _Path]
    components: _Components


class Endpoint(Struct, frozen=True, kw_only=True):
    """A method on a path, with references resolved. ``str()`` is ``GET /projects/{project_id}``."""

    method: str
    path: str
    tags: list[str]
    deprecated: bool
    stability: str
    query: dict[str, Parameter]
    body: Schema | None
    answers: dict[int, Body]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def is_called_by(self, method: str, path: str) -> bool:
        """Return whether the endpoint matches a request. Another one may match it as well."""
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
    """The description with its references resolved."""

    def __init__(self, folder: Path = FOLDER) -> None:
        package = folder / "node_modules" / PACKAGE
        self.file = package / "public-v2-for-users.gen.yaml"
        assert self.file.exists(), f"{self.file} is missing: run make contract"
        self.version = str(msgspec.json.decode((package / "package.json").read_bytes())["version"])
        self.document: dict[str, Any] = msgspec.yaml.decode(self.file.read_bytes())
        document = msgspec.convert(self.document, _Document)
        self._components = document.components
        self.endpoints = [
            self._endpoint(method, path, item, operation)
            for path, item in document.paths.items()
            for method in ("get", "post", "put", "patch", "delete")
            if not isinstance(operation := getattr(item, method), UnsetType)
        ]

    def endpoint_of(self, method: str, path: str) -> Endpoint | None:
        """Return the matching endpoint with the fewest parameters."""
        found = [one for one in self.endpoints if one.is_called_by(method, path)]
        return min(found, key=lambda one: one.path.count("{"), default=None)

    def response_schema(self, endpoint: Endpoint, status: int) -> dict[str, Any]:
        """Return the schema of a JSON response as published."""
        responses = self.document["paths"][endpoint.path][endpoint.method.lower()]["responses"]
        response = responses[status] if status in responses else responses[str(status)]
        if "$ref" in response:
            response = self.document["components"]["responses"][_name(response["$ref"])]
        [content] = response["content"].values()
        schema: dict[str, Any] = content["schema"]
        return schema

    def whole(self, schema: Schema) -> Schema:
        """``schema`` with its reference followed and its parts put together."""
        if schema.ref:
            return self.whole(self._components.schemas[_name(schema.ref)])
        whole = schema
        for part in map(self.whole, schema.parts):
            whole = Schema(
                type=whole.type or part.type,
                format=whole.format or part.format,
                enum=whole.enum or part.enum,
                nullable=whole.nullable or part.nullable,
                deprecated=whole.deprecated or part.deprecated,
                required=whole.required + part.required,
                properties={**whole.properties, **part.properties},
                items=whole.items or part.items,
                values=whole.values or part.values,
            )
        return whole

    def _endpoint(self, method: str, path: str, item: _Path, operation: _Operation) -> Endpoint:
        parameters = list(map(self._parameter, item.parameters + operation.parameters))
        body = None if isinstance(operation.body, UnsetType) else operation.body
        return Endpoint(
            method=method.upper(),
            path=path,
            tags=operation.tags,
            deprecated=operation.deprecated,
            stability=operation.stability,
            query={one.name: one for one in parameters if one.place == "query"},
            body=schema_of(body) if body else None,
            answers={
                int(code): self._answer(answer)
                for code, answer in operation.responses.items()
                if str(code).startswith("2")
            },
        )

    def _parameter(self, parameter: Parameter) -> Parameter:
        if parameter.ref:
            return self._components.parameters[_name(parameter.ref)]
        return parameter

    def _answer(self, answer: Body) -> Body:
        return self._components.responses[_name(answer.ref)] if answer.ref else answer


def schema_of(body: Body) -> Schema | None:
    """The schema of a JSON body; None for an empty one."""
    return next((content.schema for content in body.content.values()), None)


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]
