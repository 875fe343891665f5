"""Compressed bodies, within a bound. Pure: no I/O."""

import zlib

ACCEPTED = "gzip"
"""What answers may be compressed with."""
_GZIP = 16 + zlib.MAX_WBITS


def decompress(body: bytes, encoding: str, limit: int) -> bytes:
    """A body whose ``Content-Encoding`` is ``encoding``: at most ``limit`` + 1 bytes of it.

    Raises ValueError for what is neither empty nor gzip, whole and alone (RFC 9110, section 8.4).
    """
    if not body:
        return body  # HEAD and 204 have none, whatever their headers say
    match encoding.strip().lower():
        case "" | "identity":
            return body
        case "gzip" | "x-gzip":
            return _decompress_gzip(body, limit)
        case other:
            raise ValueError(f"its encoding is {other!r}, where {ACCEPTED} alone is accepted")


def _decompress_gzip(body: bytes, limit: int) -> bytes:
    stream = zlib.decompressobj(_GZIP)
    try:
        content = stream.decompress(body, limit + 1)
    except zlib.error as error:
        raise ValueError(f"it is not gzip: {error}") from None
    if len(content) <= limit and (stream.unused_data or not stream.eof):
        raise ValueError("its gzip is not whole, or not alone")
    return content
