"""The wire format: URL, headers and body of a request; Struct or error of a response. Pure."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Generic, TypeVar
from urllib.parse import quote, unquote, urlencode

import msgspec
from msgspec import UNSET

from neonctl_async._internal import shorten
from neonctl_async._version import __version__
from neonctl_async.errors import APIError, ConnectionLostError, InvalidResponseError
from neonctl_async.models.secret import Secret
from neonctl_async.transport.encoding import (
    ACCEPT_ENCODING,
    JSON,
    UNREADABLE,
    ErrorBody,
    QueryValue,
    are_plain,
    changes_path,
    check_length,
    decode,
    decode_error,
    decompress,
    encode,
    path_segment,
    query_items,
)
from neonctl_async.transport.hints import address_hint, id_hint, org_hint
from neonctl_async.transport.redaction import MAX_CHARACTERS, hide_secrets

T = TypeVar("T")

USER_AGENT = f"neonctl-async/{__version__}"
DEFAULT_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": ACCEPT_ENCODING,
    "User-Agent": USER_AGENT,
}
"""The headers of every request."""
REQUEST_ID = "X-Request-ID"
"""The header with the client's request id."""
HOLDS_READS = "Neonctl-Holds-Reads"
"""The header of a local control plane that responds to reads of new operations once they settle."""
EXCERPT_CHARACTERS = 200
READS = frozenset({"POST /projects/{id}/branches/{id}/logs/query"})
"""The routes that only read, although their method is not GET."""
MAX_PATH_CHARACTERS = 4096
"""The maximum length of a path in :func:`raw_request`. Servers refuse longer paths."""
CLOCK_TOLERANCE = timedelta(seconds=2)
"""The largest difference between the clocks that is ignored, because ``Date`` is in seconds."""
MAX_ERROR_BYTES = 1024 * 1024
"""The largest error body that is decoded. Nested JSON needs up to 25 times as much memory."""


def is_read(route: str) -> bool:
    """Return whether requests to a route only read."""
    return route.startswith("GET ") or route in READS


class Request(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One request. The rate budget counts requests by ``route``, such as ``GET /projects/{id}``."""

    method: str
    path: str
    route: str
    response_type: type[T]
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    content_type: str = JSON

    @property
    def is_read(self) -> bool:
        """True if the request only reads, so that it can be repeated after any failure."""
        return is_read(self.route)

    @property
    def project_id(self) -> str | None:
        """The project id in the path, or None."""
        _, first, *rest = self.path.split("/")
        if first != "projects" or not rest or rest[0] == "auth":  # /projects/auth/keys
            return None
        return unquote(rest[0])

    def __rich_repr__(self) -> list[tuple[str, object]]:
        # Tracebacks show local variables, and a body may contain a password.
        return [("route", self.route)]

    def __repr__(self) -> str:
        return f"<Request {self.route}>"


class Response(msgspec.Struct, frozen=True, gc=False):
    """A response, with case-insensitive ``headers``.

    ``body`` may be compressed. If it is larger than allowed, its end may be missing.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    def __rich_repr__(self) -> list[tuple[str, object]]:
        # Tracebacks show local variables, and a body may contain a password.
        return [("status", self.status)]

    def __repr__(self) -> str:
        return f"<Response {self.status}>"


def request(
    method: str,
    template: str,
    response_type: type[T],
    *ids: str | int,
    query: Mapping[str, QueryValue] | None = None,
    body: object = UNSET,
) -> Request[T]:
    """Return a request to the path ``template``, with ``ids`` in place of its ``{name}`` parts.

    Raises ValueError or TypeError, naming the parameter, for an id that is empty, is too long, or
    would change the path.
    """
    names, pattern, route = _parameters(method, template)
    if len(ids) != len(names) or not are_plain(ids):
        ids = tuple(path_segment(name, id) for name, id in zip(names, ids, strict=True))
    return Request(
        method,
        pattern % ids,
        route,
        response_type,
        query_items(query),
        *encode(body),
    )


@cache
def _parameters(method: str, template: str) -> tuple[list[str], str, str]:
    """Return the parameter names of a template, its ``%`` format string, and its route."""
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
    """Return a request to ``path`` below the base URL.

    In its route, every segment with a digit counts as a parameter, because ids contain digits.
    Raises ValueError for a path that could leave the base URL, or a method that is not a word.
    """
    if not re.fullmatch("[A-Za-z]+", method):
        raise ValueError(f"method is {shorten(method)}: expected a name such as GET")
    segments = check_length("path", path, MAX_PATH_CHARACTERS).split("/")[1:]
    if not path.startswith("/") or not all(segments):
        raise ValueError(
            f"path is {shorten(path)}: expected /segment/segment, relative to the base URL"
        )
    if not _SAFE_PATH.fullmatch(path) or any(map(changes_path, map(unquote, segments))):
        raise ValueError(
            f"path is {shorten(path)}: expected segments of unreserved or percent-encoded "
            "characters, without a part '.' or '..'; pass the query as query="
        )
    shape = "/".join("{id}" if re.search(r"\d", part) else part for part in segments)
    method = method.upper()
    return Request(
        method,
        path,
        f"{method} /{shape}",
        response_type,
        query_items(query),
        *encode(body),
    )


# RFC 3986, section 3.3, without encoded '.' and '\\', which could change the path.
_SAFE_PATH = re.compile(
    r"(?:[\w/.~!$&'()*+,;=:@-]|%(?!2e|5c)[0-9a-f]{2})+", re.ASCII | re.IGNORECASE
)


class Wire:
    """Encodes requests for one base URL, and decodes their responses.

    Errors do not show any of ``own_keys``, which may change.
    """

    def __init__(self, base_url: str, own_keys: Sequence[Secret], max_response_bytes: int) -> None:
        self._base_url = base_url
        self._own_keys = own_keys
        self._max_bytes = max_response_bytes
        self.is_address_right: bool = False
        """True once a request has succeeded."""

    def url(self, request: Request[T]) -> str:
        """Return the percent-encoded URL of a request."""
        query = f"?{urlencode(request.query, quote_via=quote)}" if request.query else ""
        return f"{self.url_without_query(request)}{query}"

    def url_without_query(self, request: Request[T]) -> str:
        """Return the URL of a request without its query, which may contain private data."""
        return f"{self._base_url}{request.path}"

    def headers(self, request: Request[T], request_id: str) -> dict[str, str]:
        """Return the headers of a request, except the API key and DEFAULT_HEADERS."""
        headers = {REQUEST_ID: request_id}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        return headers

    def check(self, request: Request[T], request_id: str, response: Response) -> None:
        """Raise APIError for any status but 2xx."""
        if not 200 <= response.status < 300:
            raise self._error(request, request_id, response)

    def read(self, request: Request[T], request_id: str, response: Response) -> T:
        """Return the decoded body of ``response``. ``request_id`` is the id that was sent.

        Raises APIError for any status but 2xx, ConnectionLostError for a 2xx response that ended
        early, and InvalidResponseError for any other invalid 2xx response.
        """
        self.check(request, request_id, response)
        try:
            record = decode(request.response_type, self._content(response, self._max_bytes))
        except UNREADABLE as error:
            if _is_cut_off(response, error):
                raise ConnectionLostError(
                    "the response ended early",
                    method=request.method,
                    path=request.path,
                    request_id=request_id,
                    maybe_delivered=True,
                ) from None
            cause = self._without_body(error)
        else:
            self.is_address_right = True
            return record
        is_page = response.body.lstrip().startswith(b"<")
        raise InvalidResponseError(
            str(cause),
            method=request.method,
            path=request.path,
            status=response.status,
            request_id=self._request_id(response, request_id),
            excerpt=self._excerpt(response),
            hint=self._address_hint(response, is_json=not is_page),
        ) from cause

    def _error(self, request: Request[T], request_id: str, response: Response) -> APIError:
        id = self._request_id(response, request_id)
        fields = ErrorBody()
        with suppress(*UNREADABLE):
            content = self._content(response, min(MAX_ERROR_BYTES, self._max_bytes))
            fields = decode_error(content)
        message = fields.message if isinstance(fields.message, str) else ""
        hint = self._address_hint(response, is_json=bool(message))
        if response.status == 404 and not hint:
            hint = id_hint(request.path)
        hint = hint or org_hint(response.status, message)
        return APIError.for_status(response.status)(
            status=response.status,
            code=self._hide(str(fields.code or "")),
            message=self._hide(message) or self._excerpt(response) or "no error message",
            reason=self._hide(str(fields.reason or "")),
            request_id=self._hide(str(fields.request_id or "")) or id,
            method=request.method,
            path=request.path,
            retry_after=retry_after(response.headers),
            hint=hint,
        )

    def _address_hint(self, response: Response, *, is_json: bool) -> str:
        if self.is_address_right:
            return ""
        return address_hint(self._base_url, response.status, is_json=is_json)

    def _content(self, response: Response, limit: int) -> bytes:
        """Return the decompressed body. Raises ValueError if it is invalid or too large."""
        content = _decompressed(response, limit)
        if len(content) > limit:
            raise ValueError(f"larger than {limit} bytes (max_response_bytes)")
        return content

    def _excerpt(self, response: Response) -> str:
        with suppress(ValueError):
            start = _decompressed(response, MAX_CHARACTERS)[:MAX_CHARACTERS]
            return self._hide(start.decode(errors="replace"))[:EXCERPT_CHARACTERS]
        return ""

    def _without_body(self, error: Exception) -> Exception:
        """Return a copy of ``error`` without frames, the body, or secrets quoted from it."""
        if isinstance(error, UnicodeDecodeError):  # of msgspec before 0.23
            return msgspec.DecodeError("Invalid UTF-8 encoded string")
        return type(error)(self._hide(str(error)))

    def _request_id(self, response: Response, sent_id: str) -> str:
        """Return the request id from the response headers, or else the id that was sent."""
        id = response.headers.get("x-neon-ret-request-id") or sent_id
        # aiohttp decodes invalid UTF-8 to surrogates, which cannot be printed or logged.
        return self._hide(id.encode(errors="replace").decode())

    def _hide(self, text: str) -> str:
        return hide_secrets(text, *self._own_keys)


def _decompressed(response: Response, limit: int) -> bytes:
    encoding = response.headers.get("Content-Encoding")
    return decompress(response.body, encoding, limit) if encoding else response.body


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the delay of ``Retry-After`` in seconds, from a number or a date (RFC 9110, 10.2.3).

    A date is compared with the ``Date`` of the response, so a wrong local clock has no effect. A
    date in the past gives 0. The result is None if the header is missing, invalid or negative.
    """
    value = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", value):
        return float(value)
    until = http_date(value)
    if until is None:
        return None
    now = http_date(headers.get("Date", "")) or datetime.now(UTC)
    return max(0.0, (until - now).total_seconds())


def _is_cut_off(response: Response, error: Exception) -> bool:
    """Return whether the connection broke in the middle of a body of unknown length."""
    has_length = {"Content-Length", "Transfer-Encoding"} & set(map(str.title, response.headers))
    return not has_length and str(error) == "Input data was truncated"


class ServerClock:
    """The clock of the server. ``now`` is a time on the loop's clock, which is never set back."""

    def __init__(self) -> None:
        self._header = ""
        self._received_at = 0.0
        self._parsed: tuple[str, datetime | None] = ("", None)

    def note(self, date: str | None, now: float) -> None:
        """Record the ``Date`` header of a response that has just arrived."""
        if date:
            self._header = date
            self._received_at = now

    def utc_now(self, now: float, local: datetime) -> datetime:
        """Return the time of day on the server. ``local`` is the local time of day.

        The result is the local time if the clocks agree, or if no response had a valid ``Date``.
        """
        if self._parsed[0] != self._header:
            self._parsed = (self._header, http_date(self._header))
        date = self._parsed[1]
        if date is None:
            return local
        try:
            server = date + timedelta(seconds=now - self._received_at)
        except OverflowError:  # a date at the end of the year 9999
            return date
        return local if abs(server - local) <= CLOCK_TOLERANCE else server


def http_date(value: str) -> datetime | None:
    """Return the date in an HTTP header, or None if it is invalid."""
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
