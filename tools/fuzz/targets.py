"""The fuzz targets. The first byte of an input selects the target; the rest is its input."""

from collections.abc import Callable

from tools.fuzz.compressed import a_compressed_body
from tools.fuzz.draw import Draw
from tools.fuzz.requests import a_raw_request, a_request
from tools.fuzz.responses import a_response
from tools.fuzz.texts import a_retry_after, a_text_with_the_key, a_value

TARGETS: dict[bytes, Callable[[Draw], None]] = {
    b"a": a_response,
    b"g": a_compressed_body,
    b"h": a_text_with_the_key,
    b"p": a_raw_request,
    b"q": a_request,
    b"r": a_retry_after,
    b"v": a_value,
}


def run(data: bytes) -> bool:
    """Run one input; return False if it selects no target."""
    target = TARGETS.get(data[:1])
    if target is not None:
        target(Draw(data[1:]))
    return target is not None
