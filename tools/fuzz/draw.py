"""Values and JSON documents from raw bytes. Each byte is a choice, so a fuzzer can steer them."""

import json
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import inspect

T = TypeVar("T")

KEY = b"<KEY>"
"""The placeholder for the API key in bodies; the key is too long to be found by chance."""
ODD: tuple[bytes, ...] = (
    *(b"null", b"true", b"false", b"0", b"-0", b"-1", b"1.5", b"1e400", b"1e-400", b"NaN"),
    *(b"Infinity", b"18446744073709551616", b"1" * 4300, b"1" * 4301, b"1e" + b"9" * 400),
    *(b'""', b'"\\ud800"', b'"\\ud83d\\ude00"', b'"\xff"', b'"\xed\xa0\x80"', b'"\\u0000"', b'"'),
    *(b"[]", b"{}", b"[null]", b'{"a":1,"a":null}', b'{"a":{"b":[null]}}', b"", b" ", b"{}{}"),
    *(b'"2016-12-31T23:59:60Z"', b'"9999-12-31T23:59:59.9999999Z"', b'"2026-01-01T00:00:00"'),
    b'"%b"' % KEY,
)
"""Unusual JSON values, and invalid JSON."""

MOMENTS = (
    "2026-01-01T12:00:00Z",
    "2026-01-01T12:00:00.123456789Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
)
DEPTHS = (1, 10, 300, 480, 900, 990, 3_000, 12_000)


class Draw:
    """Takes one value after another from the bytes, and zeros when the bytes are used up."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def byte(self) -> int:
        """Return the next byte."""
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def number(self) -> int:
        """Return a signed integer of up to ten bytes."""
        size = self.byte() % 11
        return int.from_bytes(bytes(self.byte() for _ in range(size)), signed=True)

    def pick(self, choices: Sequence[T]) -> T:
        """Return one of the choices."""
        return choices[self.byte() % len(choices)]

    def some(self, one: Callable[[], T]) -> list[T]:
        """Return up to seven results of ``one``."""
        return [one() for _ in range(self.byte() % 8)]

    def text(self) -> str:
        """Return the text up to the next byte 0xFF; invalid UTF-8 becomes surrogates."""
        end = self._data.find(b"\xff", self._at)
        taken = self._data[self._at : end if end >= 0 else len(self._data)]
        self._at += len(taken) + 1
        return taken.decode(errors="surrogateescape")

    def rest(self) -> bytes:
        """Return all remaining bytes."""
        taken = self._data[self._at :]
        self._at = len(self._data)
        return taken


def document(draw: Draw, kind: inspect.Type) -> bytes:
    """Return JSON for ``kind``: minimal from zeros, richer and odder from larger bytes."""
    if draw.byte() >= 224:
        return _odd(draw)
    match kind:
        case inspect.StructType():
            return _record(draw, kind)
        case inspect.ListType(item_type=item):
            return b"[" + b",".join(draw.some(lambda: document(draw, item))) + b"]"
        case inspect.DictType(value_type=item):
            return _object(draw.some(lambda: (draw.text(), document(draw, item))))
        case inspect.UnionType(types=types):
            return document(draw, draw.pick(types))
        case _:
            return _scalar(draw, kind)


def _scalar(draw: Draw, kind: inspect.Type) -> bytes:
    match kind:
        case inspect.DateTimeType():
            return _quoted(draw.pick((*MOMENTS, draw.text())))
        case inspect.IntType():
            return str(draw.number()).encode()
        case inspect.FloatType():
            return str(draw.number() / 4).encode()
        case inspect.BoolType():
            return draw.pick((b"true", b"false"))
        case inspect.NoneType():
            return b"null"
        case inspect.AnyType():
            return _odd(draw)
        case _:
            return _quoted(draw.text())


def _record(draw: Draw, kind: inspect.StructType) -> bytes:
    members = [
        (field.encode_name, document(draw, field.type))
        for field in kind.fields
        if field.required or draw.byte() % 2
    ]
    names = [field.encode_name for field in kind.fields]
    return _object([*members, *draw.some(lambda: (draw.pick((draw.text(), *names)), _odd(draw)))])


def _odd(draw: Draw) -> bytes:
    choice = draw.byte()
    if choice < 200:
        return ODD[choice % len(ODD)]
    depth = draw.pick(DEPTHS)
    opening, closing = draw.pick(((b"[", b"]"), (b'{"a":', b"}"), (b"[", b"")))
    return opening * depth + b"1" + closing * depth


def _object(members: Sequence[tuple[str, bytes]]) -> bytes:
    return b"{" + b",".join(_quoted(name) + b":" + value for name, value in members) + b"}"


def _quoted(text: str) -> bytes:
    return json.dumps(text).encode()
