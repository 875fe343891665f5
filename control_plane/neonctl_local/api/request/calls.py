"""Requests and responses of the API, independent of the HTTP library."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from neonctl_local.api.request.decoding import LSN, NAME, decode, describe_pattern
from neonctl_local.clock import Instant, in_seconds, instant
from neonctl_local.engine.api_keys import Principal
from neonctl_local.engine.points import PointInTime
from neonctl_local.errors import ApiError, invalid
from neonctl_local.storage.rows import Row

T = TypeVar("T")

Json = dict[str, object]
"""A JSON object in a response."""

_Timestamp = Annotated[datetime, Meta(tz=True)]
_encoder = msgspec.json.Encoder()


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """An authenticated request. ``path`` contains the decoded path parameters.

    ``checked_points`` are the points in time that are known to have data.
    """

    principal: Principal
    path: Mapping[str, str]
    query: Mapping[str, str]
    content: bytes = b""
    checked_points: frozenset[PointInTime] = frozenset()

    def body(self, kind: type[T]) -> T:
        """Decode the JSON body, or ``{}`` if it is empty. Raise 400 if a field is invalid."""
        return decode(self.content, kind)

    def part(self, name: str, kind: type[T]) -> T:
        """Return a required field of the JSON body. Raise 400 as :meth:`body` does."""
        body = self.body(_body_with(name, kind))  # type: ignore[arg-type]  # mypy takes a type[T] for unhashable, but every class is hashable
        part: T = getattr(body, name)
        return part

    def integer(self, name: str, default: int) -> int:
        """Return an integer query parameter, whose range was checked with the request."""
        return int(self.query.get(name, default))

    def limit(self, maximum: int) -> int:
        """Return the query parameter ``limit``, by default ``maximum``. Raise 400 if it is invalid.

        Its range is checked here, because the published description has none for the newest
        endpoints.
        """
        text = self.query.get("limit", str(maximum))
        if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= maximum:
            raise invalid(f"invalid request: limit: {text!r} is invalid: use 1 to {maximum}")
        return int(text)

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        """Return a query parameter. Raise 400, naming it, if it is not one of ``choices``."""
        value = self.query.get(name, default)
        if value not in choices:
            raise invalid(f"invalid request: {name}: {value!r} is not one of {', '.join(choices)}")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean query parameter. The default is ``False``."""
        return self.query.get(name, "").lower() == "true"

    def timestamp(self, name: str) -> Instant | None:
        """Return an optional query parameter that is a time. Raise 400, naming it, if invalid."""
        text = self.query.get(name)
        if text is None:
            return None
        try:
            return instant_of(name, msgspec.convert(text, _Timestamp))
        except msgspec.ValidationError:
            raise invalid(f"invalid request: {name}: {text!r} is not an RFC 3339 time") from None

    def point_in_time(self, prefix: str = "") -> tuple[str | None, Instant | None]:
        """Return the query parameters ``lsn`` and ``timestamp``. Raise 400 if both are set."""
        at = self.timestamp(f"{prefix}timestamp")
        if f"{prefix}lsn" not in self.query:
            return None, at
        if at is not None:
            raise invalid(f"invalid request: {prefix}lsn: not together with {prefix}timestamp")
        return self._text(f"{prefix}lsn", LSN), at

    def name(self, parameter: str, max_length: int) -> str | None:
        """Return an optional query parameter that is a name. Raise 400 if it is not valid."""
        if parameter not in self.query:
            return None
        if len(self.query[parameter]) > max_length:
            raise invalid(f"invalid request: {parameter}: longer than {max_length} characters")
        return self._text(parameter, NAME)

    def _text(self, name: str, pattern: str) -> str:
        text = self.query[name]
        if not re.match(pattern, text):
            expected = describe_pattern(pattern)
            raise invalid(f"invalid request: {name}: {text!r} is invalid: expected {expected}")
        return text

    def required(self, name: str) -> str:
        """Return a required query parameter. Raise 400, naming it, if it is missing."""
        value = self.query.get(name)
        if not value:
            raise invalid(f"invalid request: {name}: query parameter required")
        return value


class Response(msgspec.Struct, frozen=True):
    """The status and the encoded body of a response."""

    status: int
    content: bytes = b""


def respond(body: object, status: int = 200) -> Response:
    """Return a response with a JSON body."""
    return Response(status, _encoder.encode(body))


def error_body(error: ApiError, request_id: str) -> bytes:
    """Return the encoded body of an error: ``code``, ``message`` and ``request_id``."""
    body = {"code": error.code, "message": error.message, "request_id": request_id}
    return _encoder.encode(body)


def drop_none(record: Json) -> Json:
    """Return the record without its ``None`` fields, which the API omits."""
    return {name: value for name, value in record.items() if value is not None}


def fields(row: Row, *names: str) -> Json:
    """Return fields of a row as fields of a response, with times in whole seconds.

    Fields that are ``None`` are left out, as in the API.
    """
    values = drop_none({name: getattr(row, name) for name in names})
    times = {name: in_seconds(getattr(row, name)) for name in values if name.endswith("_at")}
    return values | times


def raw_json(text: str) -> msgspec.Raw:
    """Wrap stored JSON, so that a response includes it unchanged."""
    return msgspec.Raw(text.encode())


def json_text(value: object) -> str:
    """Encode part of a request body as JSON for storage."""
    return _encoder.encode(value).decode()


def instant_of(name: str, moment: datetime) -> Instant:
    """Convert a time to an instant. Raise 400 if it is not within the years 1 to 9999."""
    try:
        return instant(moment.astimezone(UTC))
    except OverflowError:
        raise invalid(
            f"invalid request: {name}: {moment.isoformat()} is not within year 1 to 9999, UTC"
        ) from None


@cache
def _body_with(name: str, kind: object) -> type[msgspec.Struct]:
    return msgspec.defstruct("Body", [(name, kind)])
