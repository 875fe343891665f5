"""Compares responses with the published description: statuses, media types and schemas."""

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import msgspec
from schemathesis import Case, Response

from control_plane.tests.conformance.published.statuses import ERRORS, ERRORS_OF, ERRORS_WITH_BODY
from tests.contract.description import Description, Endpoint, schema_of
from tests.contract.validation import strict_schema


class Published:
    """The published responses of all operations."""

    def __init__(self, description: Description) -> None:
        self._description = description
        self._endpoints = {str(endpoint): endpoint for endpoint in description.endpoints}
        self._validators: dict[tuple[str, int], jsonschema_rs.Validator | None] = {}

    def problems(self, case: Case[Any], response: Response) -> Iterator[tuple[str, str]]:
        """Yield the check and the description of each difference of a response."""
        endpoint, status = self._endpoints[case.operation.label], response.status_code
        has_method = case.method == endpoint.method
        if status not in (self._statuses(endpoint) if has_method else {405}):
            yield "status", f"{status} is neither published nor in statuses.py"
        yield from _media_type(response)
        yield from self._schema(endpoint, status, response.content)

    def _statuses(self, endpoint: Endpoint) -> set[int]:
        statuses = {*self._responses(endpoint), *ERRORS, *ERRORS_OF.get(str(endpoint), ())}
        return statuses.union(ERRORS_WITH_BODY) if endpoint.body else statuses

    def _responses(self, endpoint: Endpoint) -> dict[int, Any]:
        """Return the published responses by status, errors included."""
        published = self._description.document["paths"][endpoint.path][endpoint.method.lower()]
        return {
            int(status): response
            for status, response in published["responses"].items()
            if status != "default"
        }

    def _schema(self, endpoint: Endpoint, status: int, content: bytes) -> Iterator[tuple[str, str]]:
        validator = self._validator(endpoint, status)
        if validator is None:
            if content:
                yield "schema", f"{status} has a body, but none is published"
            return
        try:
            decoded = msgspec.json.decode(content)
        except msgspec.DecodeError as reason:
            yield "schema", f"the body is not JSON: {reason}"
            return
        for error in validator.iter_errors(decoded):
            place = ".".join("*" if isinstance(at, int) else at for at in error.instance_path)
            if "propertyNames" in error.schema_path:
                yield "schema", f"{place}: {error.message.partition(' ')[0]} is not published"
            else:
                yield "schema", f"{place}: {error.message[:100]}"

    def _validator(self, endpoint: Endpoint, status: int) -> jsonschema_rs.Validator | None:
        key = (str(endpoint), status if status in self._responses(endpoint) else 0)
        if key not in self._validators:
            self._validators[key] = self._make_validator(endpoint, status)
        return self._validators[key]

    def _make_validator(self, endpoint: Endpoint, status: int) -> jsonschema_rs.Validator | None:
        if status in endpoint.responses and schema_of(endpoint.responses[status]) is None:
            return None
        of = status if status in self._responses(endpoint) else "default"
        schema = strict_schema(self._description, self._description.response_schema(endpoint, of))
        return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)


def _media_type(response: Response) -> Iterator[tuple[str, str]]:
    [media_type] = response.headers.get("content-type", ["none"])
    if response.content and media_type.partition(";")[0] != "application/json":
        yield "media type", f"{media_type!r} instead of 'application/json'"
