"""Path, query and body of a request, and the body of a response, as bytes. Pure: no I/O."""

import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import UNSET, UnsetType

from neonctl_async._internal import shorten
from neonctl_async.models.secret import Secret, decode_hook, encode_hook
from neonctl_async.transport.hints import wrong_id, wrong_value

T = TypeVar("T")

MAX_ID_CHARACTERS: Final = 256
"""The maximum length of an id. Neon's longest ids and names have 63 characters."""
MAX_KEY_CHARACTERS: Final = 1024
"""The maximum length of an object key."""
NAMES: Final = frozenset({"database_name", "field_name", "object_key", "role_name"})
"""The parameters that are not ids, and may contain ``/``, which is sent as ``%2F``."""

_SEPARATOR: Final = re.compile(r"[/\\]")


def path_segment(name: str, value: str | int) -> str:
    """Return an id, a name or an object key as one percent-encoded segment of a path.

    Raises ValueError or TypeError, naming the parameter, for a value that is empty, is too long, or
    would change the path.
    """
    if are_plain((value,)):
        return str(value)
    if isinstance(value, bool) or not isinstance(value, str | int):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
        raise TypeError(wrong_id(name, value))
    text = str(value)
    if name in NAMES:
        # A proxy may decode %2F and then resolve '..', so that another object or even another kind
        # of object would be read or deleted.
        if changes_path(text):
            raise ValueError(
                f"{name} is {shorten(text)}: expected a text that is not empty and has no part '.' "
                "or '..' between slashes, which would change the path"
            )
    elif text in {"", ".", ".."} or "/" in text:
        raise ValueError(
            f"{name} is {shorten(text)}: expected an id that is not empty, '.' or '..' and has no "
            "'/', which would change the path"
        )
    maximum = MAX_KEY_CHARACTERS if name == "object_key" else MAX_ID_CHARACTERS
    return quote(check_utf8(name, check_length(name, text, maximum)), safe="")


def changes_path(text: str) -> bool:
    """Return whether a server that decodes ``text`` in a path may resolve it to another path."""
    return not text or not {".", ".."}.isdisjoint(_SEPARATOR.split(text))


def are_plain(ids: tuple[Any, ...]) -> bool:
    """Return whether all ids are strings that need no encoding and no further check."""
    try:
        text = "".join(ids)
    except TypeError:
        return False
    is_plain = text.isascii() and text.replace("-", "").isalnum()
    return is_plain and "" not in ids and len(text) <= MAX_ID_CHARACTERS


QueryValue: TypeAlias = str | int | float | datetime | list[str] | tuple[str, ...] | UnsetType


def query_items(query: Mapping[str, QueryValue] | None) -> tuple[tuple[str, str], ...]:
    """Return the names and values of a query. A name is repeated for each item of a list.

    Raises ValueError or TypeError, naming the parameter, for a value that cannot be sent.
    """
    return tuple(_items(query)) if query else ()


def check_aware(name: str, value: datetime) -> datetime:
    """Return ``value``. Raises ValueError if it has no time zone."""
    if value.utcoffset() is None:
        raise ValueError(
            f"{name} is {value.isoformat()}: expected a datetime with a time zone, "
            "as from datetime.now(UTC)"
        )
    return value


def _items(query: Mapping[str, QueryValue]) -> Iterator[tuple[str, str]]:
    for name, value in query.items():
        check_utf8("a name in query", name)
        match value:
            case UnsetType():
                pass
            case list() | tuple():
                yield from ((name, _text(name, item)) for item in value)
            case _:
                yield name, _text(name, value)


def _text(name: str, value: object) -> str:
    match value:
        case str():
            return check_utf8(name, value)
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case datetime():
            return _utc(name, value).isoformat()
        case _:
            expected = "a string, number, bool or datetime"
            raise TypeError(wrong_value(name, value, expected))


def _utc(name: str, value: datetime) -> datetime:
    try:
        return check_aware(name, value).astimezone(UTC)
    except OverflowError:
        raise ValueError(
            f"{name} is {value.isoformat()}: expected years 1 to 9999 in UTC"
        ) from None


JSON: Final = "application/json"
"""The ``Content-Type`` of a JSON body."""
_NOT_UTF8: Final = (
    "a text of the body cannot be written as UTF-8: it has a surrogate, as from os.fsdecode() or "
    "errors='surrogateescape'"
)


class File(msgspec.Struct, frozen=True):
    """A file in a form. Its repr does not show the content."""

    name: str
    content: bytes
    content_type: str

    def __repr__(self) -> str:
        return f"<File {self.name}>"


class Form(msgspec.Struct, frozen=True):
    """A ``multipart/form-data`` body: strings and files by field name.

    The names must be plain ASCII words. The repr does not show the content.
    """

    fields: Mapping[str, str | Secret | File]

    def __repr__(self) -> str:
        return f"<Form {', '.join(self.fields)}>"


def encode(body: object) -> tuple[bytes | None, str]:
    """Return a body as bytes, and its ``Content-Type``. UNSET means no body.

    Raises TypeError for a value that JSON cannot represent, and ValueError for a string that UTF-8
    cannot encode.
    """
    if body is UNSET:
        return None, JSON
    if isinstance(body, Form):
        boundary = os.urandom(16).hex()
        parts = b"".join(_parts(body, boundary.encode()))
        return parts, f"multipart/form-data; boundary={boundary}"
    return encode_json(body), JSON


def encode_json(body: object) -> bytes:
    """Return a body as JSON that contains the value of each :class:`SentSecret`.

    Raises TypeError for a value that JSON cannot represent, and ValueError for a string that UTF-8
    cannot encode.
    """
    with suppress(UnicodeEncodeError):  # the error contains the text, which may be a secret
        return msgspec.json.encode(body, enc_hook=encode_hook)
    raise ValueError(_NOT_UTF8)


def _parts(form: Form, boundary: bytes) -> Iterator[bytes]:
    for name, value in form.fields.items():
        head = f'Content-Disposition: form-data; name="{name}"'
        if isinstance(value, File):
            head += f'; filename="{value.name}"\r\nContent-Type: {value.content_type}'
        yield from (b"--", boundary, b"\r\n", head.encode(), b"\r\n\r\n")
        yield _content(name, value)
        yield b"\r\n"
    yield from (b"--", boundary, b"--\r\n")


def _content(name: str, value: str | Secret | File) -> bytes:
    if isinstance(value, File):
        return value.content
    if not isinstance(value, str | Secret):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
        raise TypeError(wrong_value(name, value, "a string"))
    with suppress(UnicodeEncodeError):  # the error contains the text, which may be a secret
        return (value.reveal() if isinstance(value, Secret) else value).encode()
    raise ValueError(_NOT_UTF8)


def check_length(name: str, text: str, maximum: int) -> str:
    """Return ``text``. Raises ValueError if it is longer than ``maximum`` characters."""
    if len(text) > maximum:
        raise ValueError(
            f"{name} is {shorten(text)}, with {len(text)} characters: expected at most {maximum}"
        )
    return text


def check_utf8(name: str, text: str) -> str:
    """Return ``text``. Raises ValueError if it contains characters that UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} is {shorten(text)}: it cannot be written as UTF-8") from None
    return text


Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

UNREADABLE = (ValueError, msgspec.DecodeError, RecursionError)
"""The errors raised for a body that cannot be decoded."""
MAX_BYTES_WITH_NULLS = 8 * 1024 * 1024
"""The largest body that is decoded a second time, without its nulls."""


class ErrorBody(msgspec.Struct):
    """The body of an error response. A server may send values that are not strings."""

    code: object = ""
    message: object = ""
    reason: object = ""
    request_id: object = ""


_error_decoder = msgspec.json.Decoder(ErrorBody)
_decoders: dict[object, msgspec.json.Decoder[Any]] = {}


def _decoder(response_type: type[T]) -> "msgspec.json.Decoder[T]":
    """Return the cached decoder for a type."""
    decoder = _decoders.get(response_type)
    if decoder is None:
        decoder = _decoders[response_type] = msgspec.json.Decoder(
            response_type, dec_hook=decode_hook
        )
    return decoder


def decode(response_type: type[T], body: bytes) -> T:
    """Return ``body`` as a value of a type. Raises one of the errors in UNREADABLE.

    An empty body is decoded as a record without fields, or as None.
    """
    if not body or body == b"null":
        body = _empty_content(response_type)
    try:
        return _decoder(response_type).decode(body)
    except msgspec.ValidationError:
        if len(body) > MAX_BYTES_WITH_NULLS:
            raise
    # The API may send null for an optional field. Decoding twice costs time only in this case.
    content = _without_nulls(msgspec.json.decode(body))
    return msgspec.convert(content, response_type, dec_hook=decode_hook)


def _without_nulls(content: Json) -> Json:
    match content:
        case dict():
            return {name: _without_nulls(v) for name, v in content.items() if v is not None}
        case list():
            return [_without_nulls(item) for item in content]
        case _:
            return content


def _empty_content(response_type: object) -> bytes:
    """Return the JSON for an empty body: a record without fields, or null."""
    is_record = isinstance(response_type, type) and issubclass(response_type, msgspec.Struct)
    return b"{}" if is_record else b"null"


def decode_error(body: bytes) -> ErrorBody:
    """Return the body of an error response. Raises one of the errors in UNREADABLE."""
    return _error_decoder.decode(body)


ACCEPT_ENCODING = "gzip"
"""The value of the ``Accept-Encoding`` request header."""
_GZIP = 16 + zlib.MAX_WBITS


def decompress(body: bytes, encoding: str, limit: int) -> bytes:
    """Decompress a body that has a ``Content-Encoding``, to at most ``limit`` + 1 bytes.

    Raises ValueError unless the body is empty, not compressed, or exactly one complete gzip stream
    (RFC 9110, section 8.4).
    """
    if not body:
        return body  # responses to HEAD and 204 are empty, despite their headers
    match encoding.strip().lower():
        case "" | "identity":
            return body
        case "gzip" | "x-gzip":
            return _decompress_gzip(body, limit)
        case other:
            raise ValueError(f"the encoding is {shorten(other)}: expected {ACCEPT_ENCODING}")


def _decompress_gzip(body: bytes, limit: int) -> bytes:
    stream = zlib.decompressobj(_GZIP)
    try:
        content = stream.decompress(body, limit + 1)
    except zlib.error as error:
        raise ValueError(f"not gzip: {error}") from None
    if len(content) <= limit and (stream.unused_data or not stream.eof):
        raise ValueError("not exactly one complete gzip stream")
    return content
