"""What is fuzzed. The first byte of an input names the target, the rest is what it draws from."""

from collections.abc import Callable

from tools.fuzz.compressed import a_compressed_body
from tools.fuzz.draw import Draw
from tools.fuzz.requests import a_raw_request, a_request
from tools.fuzz.responses import an_answer
from tools.fuzz.texts import a_retry_after, a_text_with_the_key, a_value

TARGETS: dict[bytes, Callable[[Draw], None]] = {
    b"a": an_answer,
    b"g": a_compressed_body,
    b"h": a_text_with_the_key,
    b"p": a_raw_request,
    b"q": a_request,
    b"r": a_retry_after,
    b"v": a_value,
}


def run(data: bytes) -> bool:
    """Run one input. False if it names no target."""
    target = TARGETS.get(data[:1])
    if target is not None:
        target(Draw(data[1:]))
    return target is not None
