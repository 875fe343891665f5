"""Compressed bodies, intact and damaged: decompressing returns the content or raises ValueError."""

import gzip

from neonctl_async.transport.encoding import decompress
from tools.fuzz.draw import Draw

LIMITS = (1 << 20, 1_000, 1, 0)
TIMES = (1, 2, 100, 20_000)


def a_compressed_body(draw: Draw) -> None:
    """Check that an intact body is decompressed up to the limit; a damaged one may fail."""
    limit, times = draw.pick(LIMITS), draw.pick(TIMES)
    damage, at, value = draw.byte() % 5, draw.byte(), draw.byte()
    given = draw.rest()
    content = given[:50] * times
    whole = gzip.compress(content, mtime=0)
    body = _damaged(damage, whole, at, value, given)
    try:
        result = decompress(body, "gzip", limit)
    except ValueError:
        assert body != whole
    else:
        assert len(result) <= limit + 1
        assert body != whole or result == content[: limit + 1]


def _damaged(damage: int, whole: bytes, at: int, value: int, given: bytes) -> bytes:
    match damage:
        case 0:
            return whole
        case 1:  # cut off
            return whole[: -1 - at % len(whole)]
        case 2:  # one byte changed
            at %= len(whole)
            return whole[:at] + bytes((value,)) + whole[at + 1 :]
        case 3:  # extra bytes at the end
            return whole + whole[at % len(whole) :]
        case _:  # arbitrary bytes
            return given
