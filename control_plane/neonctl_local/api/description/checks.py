"""Checks requests against the published description, before they are handled."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

import msgspec
from msgspec import UnsetType

from neonctl_local.api.description.published import Endpoint, Schema, description
from neonctl_local.api.description.types import Kind, Types
from neonctl_local.api.request.decoding import decode, describe_problem
from neonctl_local.errors import invalid

_ROLE: Final = "/projects/{project_id}/branches/{branch_id}/roles/{role_name}"
_BRANCH: Final = "/projects/{project_id}/branches/{branch_id}"

UNPUBLISHED: Final[Mapping[str, str]] = {
    f"POST {_BRANCH}/set_as_primary": f"POST {_BRANCH}/set_as_default",
    f"POST {_ROLE}/reveal_password": f"GET {_ROLE}/reveal_password",
}
"""The routes that only neon-api 0.3.0 calls, and the published endpoints that replaced them."""

IGNORED: Final[Mapping[str, frozenset[str]]] = {
    f"GET {_BRANCH}/databases": frozenset({"cursor", "limit"}),
}
"""The query parameters that only neon-api 0.3.0 sends. They are ignored."""

_INTEGER: Final = re.compile(r"-?[0-9]{1,20}")
_BOOLEANS: Final = {"true": True, "false": False, "True": True, "False": False}
"""The spellings of a boolean. neon-api 0.3.0 sends Python's."""


class RequestChecker:
    """Checks requests for one endpoint."""

    def __init__(self, name: str, endpoint: Endpoint, types: Types) -> None:
        self._name = name
        self._parameters = endpoint.query
        self._ignored = IGNORED.get(name, frozenset())
        self._schemas: dict[str, Schema] = {}
        self._kinds: dict[str, Kind] = {}
        for parameter_name, parameter in endpoint.query.items():
            self._schemas[parameter_name] = types.resolved(parameter.schema)
            self._kinds[parameter_name] = types.of(parameter.schema)
        self._body_required = endpoint.body_required
        self._body: Kind = None if isinstance(endpoint.body, UnsetType) else types.of(endpoint.body)

    def check(self, query: Iterable[tuple[str, str]], content: bytes) -> None:
        """Raise a 400 that names the first invalid parameter, or the first invalid field."""
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
            if name not in self._ignored:
                given[name].append(text)
        for name, texts in given.items():
            if name not in self._parameters:
                raise invalid(f"invalid request: {name}: {self._unknown()}")
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

    def _unknown(self) -> str:
        if not self._parameters:
            return f"{self._name} has no query parameters"
        known = ", ".join(sorted(self._parameters))
        return f"unknown query parameter: {self._name} has {known}"


def check_request(route: str, query: Iterable[tuple[str, str]], content: bytes) -> None:
    """Check the query parameters and the body of a request for a route.

    Raise a 400 that names the invalid field. A route that is not published is not checked.
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
    """Return the value of a query parameter, or its text if it does not have the type."""
    if schema.type == "integer" and _INTEGER.fullmatch(text):
        return int(text)
    if schema.type == "boolean":
        return _BOOLEANS.get(text, text)
    return text
