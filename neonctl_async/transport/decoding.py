"""Response bodies: decompressed up to a size limit, and decoded to Structs. Pure: no I/O."""

import zlib
from typing import Any, TypeAlias, TypeVar

import msgspec

from neonctl_async._internal import shorten
from neonctl_async.models.secret import decode_hook

T = TypeVar("T")

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

UNREADABLE = (ValueError, msgspec.DecodeError, RecursionError)
"""The errors of a body that cannot be decoded."""
MAX_BYTES_WITH_NULLS = 8 * 1024 * 1024
"""The largest body that is decoded a second time, without its nulls."""


class ErrorBody(msgspec.Struct):
    """The body of an error response. A server may send other types than strings."""

    code: object = ""
    message: object = ""
    reason: object = ""
    request_id: object = ""


_error_decoder = msgspec.json.Decoder(ErrorBody)
_decoders: dict[object, msgspec.json.Decoder[Any]] = {}


def _decoder(response_type: type[T]) -> "msgspec.json.Decoder[T]":
    """Return the cached decoder of a type."""
    decoder = _decoders.get(response_type)
    if decoder is None:
        decoder = _decoders[response_type] = msgspec.json.Decoder(
            response_type, dec_hook=decode_hook
        )
    return decoder


def decode(response_type: type[T], body: bytes) -> T:
    """Return ``body`` as a value of a type. Raises an error in UNREADABLE.

    An empty body is a record without fields, or None.
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
    """Return the body of an error response. Raises an error in UNREADABLE."""
    return _error_decoder.decode(body)


ACCEPT_ENCODING = "gzip"
"""The value of the request header ``Accept-Encoding``."""
_GZIP = 16 + zlib.MAX_WBITS


def decompress(body: bytes, encoding: str, limit: int) -> bytes:
    """Return at most ``limit`` + 1 bytes of a body with the ``Content-Encoding`` ``encoding``.

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
