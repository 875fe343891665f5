"""Decompression of response bodies, up to a size limit. Pure: no I/O."""

import zlib

from neonctl_async._internal import shorten

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
