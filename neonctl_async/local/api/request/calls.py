"""A request and its answer, as the domain sees them: no HTTP library in here."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta

from neonctl_async.local.api.request import formats
from neonctl_async.local.clock import Instant, instant
from neonctl_async.local.engine.api_keys import Principal
from neonctl_async.local.errors import ApiError, invalid

T = TypeVar("T")

Json = dict[str, object]
"""An object of an answer."""

_MISSING: Final = re.compile(
    r"Object missing required field `(?P<name>[^`]+)`(?: - at `\$(?P<at>.*)`)?"
)
_Moment = Annotated[datetime, Meta(tz=True)]
_encoder = msgspec.json.Encoder()


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """An authenticated request. ``path`` holds the parameters of the path, decoded."""

    principal: Principal
    path: Mapping[str, str]
    query: Mapping[str, str]
    content: bytes = b""

    def body(self, kind: type[T]) -> T:
        """The JSON body. Raises 400 naming the field that does not fit; no body is ``{}``."""
        try:
            return msgspec.json.decode(self.content or b"{}", type=kind)
        except msgspec.DecodeError as error:
            raise invalid(f"invalid request: decode application/json: {_explain(error)}") from None
        except RecursionError:
            raise _too_deep() from None

    def integer(self, name: str, minimum: int, maximum: int, default: int) -> int:
        """A query parameter that is a whole number in bounds. Raises 400 naming it."""
        text = self.query.get(name, str(default))
        # No sign, no underscores, no digits of other scripts: int() takes more than the API does.
        digits = text.isascii() and text.isdigit() and len(text) <= len(str(maximum))
        if not (digits and minimum <= int(text) <= maximum):
            raise invalid(f"invalid request: {name}: {text!r} is not within {minimum} to {maximum}")
        return int(text)

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        """A query parameter that is one of a few words. Raises 400 naming it."""
        value = self.query.get(name, default)
        if value not in choices:
            raise invalid(f"invalid request: {name}: {value!r} is not one of {', '.join(choices)}")
        return value

    def flag(self, name: str) -> bool:
        """A query parameter that is a boolean, false if left out."""
        return self.choice(name, ("true", "false", "True", "False"), "false").lower() == "true"

    def moment(self, name: str) -> Instant | None:
        """A query parameter that is a time, if it is there. Raises 400 naming it."""
        text = self.query.get(name)
        if not text:
            return None
        try:
            return instant_of(name, msgspec.convert(text, _Moment))
        except msgspec.ValidationError:
            raise invalid(f"invalid request: {name}: {text!r} is no time as of RFC 3339") from None

    def point(self, prefix: str = "") -> tuple[str | None, Instant | None]:
        """The query parameters ``lsn`` and ``timestamp``. Raises 400 for both at once."""
        lsn, at = self.query.get(f"{prefix}lsn"), self.moment(f"{prefix}timestamp")
        if not lsn:
            return None, at
        if at is not None:
            raise invalid(f"invalid request: {prefix}lsn: not together with {prefix}timestamp")
        if not re.match(formats.LSN, lsn):
            words = formats.IN_WORDS[formats.LSN]
            raise invalid(f"invalid request: {prefix}lsn: {lsn!r} is not {words}")
        return lsn, at

    def text(self, name: str, longest: int) -> str | None:
        """A query parameter of a bounded length, if it is there. Raises 400 naming it."""
        value = self.query.get(name)
        if value is not None and len(value) > longest:
            raise invalid(f"invalid request: {name}: longer than {longest} characters")
        return value or None

    def required(self, name: str) -> str:
        """A query parameter that has to be there. Raises 400 naming it."""
        value = self.query.get(name)
        if not value:
            raise invalid(f"invalid request: {name}: query parameter required")
        return value


class Response(msgspec.Struct, frozen=True):
    """An answer: its status and its body, encoded."""

    status: int
    content: bytes = b""


def respond(body: object, status: int = 200) -> Response:
    """An answer with a JSON body."""
    return Response(status, _encoder.encode(body))


def error_body(error: ApiError, request_id: str) -> bytes:
    """The error shape: ``code``, ``message``, ``request_id``."""
    body = {"code": error.code, "message": error.message, "request_id": request_id}
    return _encoder.encode(body)


def present(record: Json) -> Json:
    """The record without the fields that are not set: the API leaves those out."""
    return {name: value for name, value in record.items() if value is not None}


def raw(stored: str) -> msgspec.Raw:
    """Stored JSON, to be encoded as it is."""
    return msgspec.Raw(stored.encode())


def stored(value: object) -> str:
    """A part of a body as JSON to store. Raises 400 where it is nested too deep for that."""
    try:
        return _encoder.encode(value).decode()
    except RecursionError:
        raise _too_deep() from None


def instant_of(name: str, moment: datetime) -> Instant:
    """The instant that a field names. Raises 400 outside of the years 1 to 9999, UTC."""
    try:
        return instant(moment.astimezone(UTC))
    except OverflowError:
        raise invalid(
            f"invalid request: {name}: {moment.isoformat()} is not within year 1 to 9999, UTC"
        ) from None


def _too_deep() -> ApiError:
    return invalid("invalid request: decode application/json: the body is nested too deep")


def _explain(error: msgspec.DecodeError) -> str:
    text = str(error)
    if missing := _MISSING.fullmatch(text):
        return f"invalid: {_field(missing['at'], missing['name'])} (field required)"
    if not isinstance(error, msgspec.ValidationError):
        return text
    problem, _, at = text.partition(" - at `$")
    for pattern, words in formats.IN_WORDS.items():
        problem = problem.replace(f"`str` matching regex {pattern!r}", words)
    return f"invalid: {_field(at.rstrip('`')) or 'body'} ({problem[:1].lower()}{problem[1:]})"


def _field(at: str | None, name: str = "") -> str:
    return ".".join(part for part in ((at or "").strip("."), name) if part)
