"""The wire format, without I/O: URL, headers and body of a call; Struct or error of an answer."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar
from urllib.parse import quote, unquote, urlencode

import msgspec
from msgspec import UNSET, UnsetType

from neonctl_async._version import __version__
from neonctl_async.errors import APIError, InvalidResponseError
from neonctl_async.models.secret import Secret, decode_hook
from neonctl_async.transport.compression import ACCEPTED, decompress
from neonctl_async.transport.redaction import SEARCHED, hide_secrets

T = TypeVar("T")

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
QueryValue: TypeAlias = str | int | float | datetime | list[str] | tuple[str, ...] | UnsetType

USER_AGENT = f"neonctl-async/{__version__}"
DEFAULT_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": ACCEPTED,
    "User-Agent": USER_AGENT,
}
"""The headers that every request has (specification, section 4)."""
EXCERPT_CHARACTERS = 200
REREAD_BYTES = 8 * 1024 * 1024
"""How large a body may be to be read once more without its nulls, as plain JSON."""
EXPLANATION_BYTES = 1024 * 1024
"""How large an error's body may be to be read as more than text: nested ones cost 25 times it."""


class Request(msgspec.Struct, Generic[T], frozen=True):
    """One call. ``route`` is what the rate budget counts by: ``GET /projects/{id}``."""

    method: str
    path: str
    route: str
    response_type: type[T]
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None

    @property
    def project_id(self) -> str | None:
        """The project whose path it is, if any."""
        _, first, *rest = self.path.split("/")
        return unquote(rest[0]) if first == "projects" and rest else None

    def __rich_repr__(self) -> list[tuple[str, object]]:
        # Bodies hold passwords, and tracebacks show locals.
        return [("route", self.route)]

    def __repr__(self) -> str:
        return f"<Request {self.route}>"


class Response:
    """What came back. ``headers`` looks names up whatever their case.

    ``body`` is as it came, compressed or not, and may end anywhere past the bound of a body.
    No Struct, so that its repr does not show the body.
    """

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status: int = status
        self.headers: Mapping[str, str] = headers
        self.body: bytes = body


def request(
    method: str,
    template: str,
    response_type: type[T],
    *ids: str | int,
    query: Mapping[str, QueryValue] | None = None,
    body: object = UNSET,
) -> Request[T]:
    """The call of ``method`` on ``template`` with its ``{name}``s filled in from ``ids``, in order.

    Raises ValueError or TypeError, naming the parameter, for an id that is empty or would change
    the path.
    """
    names, pattern, route = _parameters(method, template)
    segments = [path_segment(*named) for named in zip(names, ids, strict=True)]
    path = pattern % tuple(segments)
    return Request(method, path, route, response_type, _query(query), _body(body))


@cache
def _parameters(method: str, template: str) -> tuple[list[str], str, str]:
    """The names of a template's parameters, it with ``%s`` for each of them, and its route."""
    names = _PARAMETER.findall(template)
    shape = _PARAMETER.sub("{id}", template)
    return names, _PARAMETER.sub("%s", template), f"{method} {shape}"


_PARAMETER = re.compile(r"{(\w+)}")


def raw_request(
    method: str,
    path: str,
    response_type: type[T],
    *,
    query: Mapping[str, QueryValue] | None = None,
    body: object = UNSET,
) -> Request[T]:
    """The call of ``method`` on a ``path`` below the base URL that the caller wrote.

    Its route is the path with every segment that holds a digit, as ids do, taken for a parameter.
    Raises ValueError for a path that could leave the base URL, or a method that is no token.
    """
    if not re.fullmatch("[A-Za-z]+", method):
        raise ValueError(f"method is {method!r}: expected a name such as GET")
    segments = path.split("/")[1:]
    if not path.startswith("/") or not all(segments):
        raise ValueError(f"path is {path!r}: expected /segment/segment, relative to the base URL")
    if not _SAFE_PATH.fullmatch(path) or {".", ".."} & set(segments):
        raise ValueError(
            f"path is {path!r}: expected segments of unreserved or percent-encoded characters, "
            "none of them '.' or '..'; a query goes into query="
        )
    shape = "/".join("{id}" if re.search(r"\d", part) else part for part in segments)
    method = method.upper()
    return Request(method, path, f"{method} /{shape}", response_type, _query(query), _body(body))


def _query(query: Mapping[str, QueryValue] | None) -> tuple[tuple[str, str], ...]:
    return tuple(_query_items(query)) if query else ()


def _body(body: object) -> bytes | None:
    return None if body is UNSET else msgspec.json.encode(body, enc_hook=_refuse)


def _refuse(value: object) -> NoReturn:
    hint = ": pass secret.reveal() if that is what you want" if isinstance(value, Secret) else ""
    raise TypeError(f"a {type(value).__name__} in a body cannot be written as JSON{hint}")


# RFC 3986, section 3.3, less what decodes to '/', '.' or '\\' and could so change the path.
_SAFE_PATH = re.compile(
    r"(?:[\w/.~!$&'()*+,;=:@-]|%(?!2[ef]|5c)[0-9a-f]{2})+", re.ASCII | re.IGNORECASE
)


class Wire:
    """Writes requests for one base URL and key, and reads what comes back."""

    def __init__(self, base_url: str, api_key: Secret, max_response_bytes: int) -> None:
        self._base_url = base_url
        self._api_key = api_key
        self._max_bytes = max_response_bytes

    def url(self, request: Request[T]) -> str:
        """The URL of a request, percent-encoded."""
        query = f"?{urlencode(request.query, quote_via=quote)}" if request.query else ""
        return f"{self.address(request)}{query}"

    def address(self, request: Request[T]) -> str:
        """The URL of a request without its query, which may name anything."""
        return f"{self._base_url}{request.path}"

    def headers(self, request: Request[T], request_id: str) -> dict[str, str]:
        """The headers of a request, but for the key and those that stand."""
        headers = {"X-Request-ID": request_id}
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        return headers

    def authorization(self) -> str:
        """The value of the header ``Authorization`` (specification, section 5)."""
        return f"Bearer {self._api_key.reveal()}"

    def read(self, request: Request[T], request_id: str, response: Response) -> T:
        """What ``answer`` says. ``request_id`` is the one that was sent.

        Raises APIError for any status but 2xx, InvalidResponseError for a 2xx that cannot be read.
        """
        if not 200 <= response.status < 300:
            raise self._error(request, request_id, response)
        try:
            return self._record(request, response)
        except _UNREADABLE as error:
            cause = self._presentable(error)
        raise InvalidResponseError(
            str(cause),
            method=request.method,
            path=request.path,
            status=response.status,
            request_id=self._id_of(response, request_id),
            excerpt=self._excerpt(response),
        ) from cause

    def _record(self, request: Request[T], response: Response) -> T:
        content = self._content(response, self._max_bytes)
        if not content or content == b"null":
            content = _nothing(request.response_type)
        return _decode(request.response_type, content)

    def _error(self, request: Request[T], request_id: str, response: Response) -> APIError:
        told = _ErrorBody()
        with suppress(*_UNREADABLE):
            content = self._content(response, min(EXPLANATION_BYTES, self._max_bytes))
            told = _ERROR_BODY.decode(content)
        message = told.message if isinstance(told.message, str) else ""
        return APIError.for_status(response.status)(
            status=response.status,
            code=self._hide(str(told.code or "")),
            message=self._hide(message) or self._excerpt(response) or "no explanation given",
            request_id=self._hide(str(told.request_id or "")) or self._id_of(response, request_id),
            method=request.method,
            path=request.path,
            retry_after=retry_after(response.headers),
        )

    def _content(self, response: Response, limit: int) -> bytes:
        """The body, decompressed. Raises ValueError if it cannot be, or is too large."""
        content = _decompressed(response, limit)
        if len(content) > limit:
            raise ValueError(f"it is larger than {limit} bytes (max_response_bytes)")
        return content

    def _excerpt(self, response: Response) -> str:
        with suppress(ValueError):
            beginning = _decompressed(response, SEARCHED)[:SEARCHED].decode(errors="replace")
            return self._hide(beginning)[:EXCERPT_CHARACTERS]
        return ""

    def _presentable(self, error: Exception) -> Exception:
        """``error`` without what it holds of the body: frames, the body itself, a value quoted."""
        if isinstance(error, UnicodeDecodeError):
            return msgspec.DecodeError("not UTF-8")
        return type(error)(self._hide(str(error)))

    def _id_of(self, response: Response, request_id: str) -> str:
        """The platform's id of a request, else the one that was sent."""
        told = response.headers.get("x-neon-ret-request-id") or request_id
        # A byte that is no UTF-8 comes as a lone surrogate, which can be neither shown nor logged.
        return self._hide(told.encode(errors="replace").decode())

    def _hide(self, text: str) -> str:
        return hide_secrets(text, self._api_key)


def _decompressed(response: Response, limit: int) -> bytes:
    encoding = response.headers.get("Content-Encoding")
    return decompress(response.body, encoding, limit) if encoding else response.body


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that ``Retry-After`` asks to wait, from either of its forms (RFC 9110, 10.2.3).

    A date is measured against the answer's own ``Date``, so that a wrong local clock does no
    harm. What is neither form, or negative, counts as absent; a date that has passed is 0.
    """
    value = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", value):
        return float(value)
    until = _http_date(value)
    if until is None:
        return None
    now = _http_date(headers.get("Date", "")) or datetime.now(UTC)
    return max(0.0, (until - now).total_seconds())


def _http_date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def path_segment(name: str, value: str | int) -> str:
    """An id, percent-encoded into a segment of a path. Raises as :func:`request` does."""
    if isinstance(value, str) and value.isascii() and value.replace("-", "").isalnum():
        return value
    if isinstance(value, bool) or not isinstance(value, str | int):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
        raise TypeError(f"{name} is a {type(value).__name__}: expected a string")
    text = str(value)
    if text in {"", ".", ".."} or "/" in text:
        raise ValueError(
            f"{name} is {text!r}: expected an id, not empty, '.' or '..' and without '/', "
            "which would change the path"
        )
    return quote(_check_utf8(name, text), safe="")


def _check_utf8(name: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} is {text!r}: it cannot be written as UTF-8") from None
    return text


def _query_items(query: Mapping[str, QueryValue]) -> Iterator[tuple[str, str]]:
    for name, value in query.items():
        _check_utf8("a name in query", name)
        match value:
            case UnsetType():
                pass
            case list() | tuple():
                yield from ((name, _query_text(name, item)) for item in value)
            case _:
                yield name, _query_text(name, value)


def _query_text(name: str, value: object) -> str:
    match value:
        case str():
            return _check_utf8(name, value)
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case datetime():
            return _utc(name, value).isoformat()
        case _:
            raise TypeError(f"{name} is {value!r}: it cannot stand in a query")


def _utc(name: str, value: datetime) -> datetime:
    try:
        return check_aware(name, value).astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{name} is {value.isoformat()}: UTC has no such year") from None


def check_aware(name: str, value: datetime) -> datetime:
    """``value``, or ValueError if it has no time zone and so names no moment."""
    if value.utcoffset() is None:
        raise ValueError(f"{name} is {value.isoformat()}: expected a datetime with a time zone")
    return value


_decoders: dict[object, msgspec.json.Decoder[Any]] = {}


def _decoder(response_type: type[T]) -> "msgspec.json.Decoder[T]":
    """The decoder of a type, made once."""
    decoder = _decoders.get(response_type)
    if decoder is None:
        decoder = _decoders[response_type] = msgspec.json.Decoder(
            response_type, dec_hook=decode_hook
        )
    return decoder


def _decode(response_type: type[T], body: bytes) -> T:
    try:
        return _decoder(response_type).decode(body)
    except msgspec.ValidationError:
        if len(body) > REREAD_BYTES:
            raise
    # The platform may write null for what it leaves out elsewhere. Only here is that costly.
    content = _without_nulls(msgspec.json.decode(body))
    return msgspec.convert(content, response_type, dec_hook=decode_hook)


def _without_nulls(content: Json) -> Json:
    match content:
        case dict():
            return {name: _without_nulls(one) for name, one in content.items() if one is not None}
        case list():
            return [_without_nulls(one) for one in content]
        case _:
            return content


def _nothing(response_type: object) -> bytes:
    """What an empty body stands for: a record without fields, or null."""
    is_record = isinstance(response_type, type) and issubclass(response_type, msgspec.Struct)
    return b"{}" if is_record else b"null"


_UNREADABLE = (ValueError, msgspec.DecodeError, RecursionError)


class _ErrorBody(msgspec.Struct):
    code: object = ""
    message: object = ""
    request_id: object = ""


_ERROR_BODY = msgspec.json.Decoder(_ErrorBody)
