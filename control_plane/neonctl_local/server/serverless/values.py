"""Converts JSON values to Postgres's text format, and values in text format to JSON.

The rules are those of Neon's proxy. Values in text format are converted in pieces, because a value
can take 64 MiB, and its elements as Python objects many times as much.
"""

import codecs
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import msgspec

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

Encode: TypeAlias = Callable[[str], bytes]
"""Returns a value in text format as JSON."""

VALUE_BYTES: Final = 72
"""The most memory that a value of a request needs for each of its separators: for a list, a float
or a part of the body, and for the list entry that refers to it."""

_BOOL, _INT2, _INT4, _FLOAT4, _FLOAT8, _JSON, _JSONB = 16, 21, 23, 700, 701, 114, 3802
_PIECE: Final = 1 << 16
_MANY: Final = 1 << 14
"""If there are more separators than this, those inside strings are not counted."""
_ESCAPED: Final = re.compile(r'[\\"]')
_ELEMENT: Final = re.compile(
    r'(?P<open>\{)|(?P<close>\})|(?P<next>,)|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^{},"]+)',
    re.DOTALL,
)
_UNESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_STRUCTURE: Final = {"open": b"[", "close": b"]", "next": b","}


def parameter(value: msgspec.Raw) -> bytes | None:
    """Return a JSON value in text format, or None for NULL.

    Raise DecodeError or RecursionError if the value cannot be decoded.
    """
    first = bytes(memoryview(value)[:1])
    if first == b"n":
        return None
    if first == b'"':
        return msgspec.json.decode(value, type=str).encode()
    if first == b"[":
        values: list[Json] = msgspec.json.decode(value)
        return _array(values).encode()
    return bytes(value)


def memory_of(body: bytes | bytearray) -> int:
    """Return the bytes of memory that the values of a request need besides their strings.

    Separators in strings need no memory, so large counts leave them out.
    """
    count = _count(body)
    return VALUE_BYTES * (count if count < _MANY else _count_outside_texts(body))


def _count(data: bytes | bytearray) -> int:
    return sum(map(data.count, (b",", b"[", b"{", b":")))


def _count_outside_texts(body: bytes | bytearray) -> int:
    """Count the separators outside strings, one piece of the body at a time.

    Other threads can run between two pieces.
    """
    plain = body.replace(rb"\\", b"").replace(rb"\"", b"")
    count, in_text = 0, 0
    for start in range(0, len(plain), _PIECE):
        parts = plain[start : start + _PIECE].split(b'"')
        count += _count(b"".join(parts[in_text::2]))
        in_text = (in_text + len(parts) - 1) % 2
    return count


def _array(values: Sequence[Json]) -> str:
    """Return a Postgres array in text format. Postgres rejects elements of different types."""
    return f"{{{','.join(map(_element, values))}}}"


def _element(value: Json) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return _array(value)
    if isinstance(value, bool | int | float):
        return msgspec.json.encode(value).decode()
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    escaped = _ESCAPED.sub(r"\\\g<0>", text)
    return f'"{escaped}"'


class Encoder(NamedTuple):
    """Encodes the values of a type: small ones at once, and large ones in pieces."""

    small: Callable[[bytes], bytes]
    large: Callable[[memoryview], Iterator[bytes]]


def encoder(type_id: int, element_ids: Mapping[int, int]) -> Encoder:
    """Return the encoder of a type. ``element_ids`` contains the element type of each array."""
    element_id = element_ids.get(type_id)
    if element_id is not None:
        encode = _TEXTS.get(element_id, msgspec.json.encode)

        return Encoder(partial(_small_array, encode=encode), partial(_large_array, encode=encode))
    return _ENCODERS.get(type_id, TEXT)


def _decode(value: bytes) -> str:
    return value.decode(errors="replace")


def _small(value: bytes, encode: Encode) -> bytes:
    return encode(_decode(value))


def _whole(value: memoryview, encode: Encode) -> Iterator[bytes]:
    """Yield a value of a type whose values are never large."""
    yield encode(str(value, errors="replace"))


def _pieces(value: memoryview, encode: Encode) -> Iterator[bytes]:
    """Yield a value in pieces that do not end within a character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for start in range(0, len(value), _PIECE):
        end = start + _PIECE
        yield encode(decoder.decode(bytes(value[start:end]), final=end >= len(value)))


def _inner(text: str) -> bytes:
    """Return a string as JSON, without its quotes."""
    return msgspec.json.encode(text)[1:-1]


def _quoted(value: memoryview) -> Iterator[bytes]:
    yield b'"'
    yield from _pieces(value, _inner)
    yield b'"'


def _small_array(value: bytes, encode: Encode) -> bytes:
    return b"".join(array_json(_decode(value), encode))


def _large_array(value: memoryview, encode: Encode) -> Iterator[bytes]:
    """Join the small parts of an array into pieces."""
    piece = bytearray()
    for part in array_json(str(value, errors="replace"), encode):
        piece += part
        if len(piece) >= _PIECE:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


def _number(text: str) -> bytes:
    # JSON has no NaN and no infinities.
    return text.encode() if text[-1].isdigit() else msgspec.json.encode(text)


_TEXTS: Final[Mapping[int, Encode]] = {
    _BOOL: lambda text: b"true" if text == "t" else b"false",
    _INT2: str.encode,
    _INT4: str.encode,
    _FLOAT4: _number,
    _FLOAT8: _number,
    _JSON: str.encode,
    _JSONB: str.encode,
}
"""The encoders of types whose values are not JSON strings."""

TEXT: Final = Encoder(partial(_small, encode=msgspec.json.encode), _quoted)
"""The encoder of all other types."""

_ENCODERS: Final[Mapping[int, Encoder]] = {
    type_id: Encoder(
        partial(_small, encode=encode),
        partial(_pieces if type_id in (_JSON, _JSONB) else _whole, encode=encode),
    )
    for type_id, encode in _TEXTS.items()
}


def array_json(text: str, encode: Encode) -> Iterator[bytes]:
    """Yield a Postgres array, such as ``{1,NULL,{2,3}}``, as JSON, without its bounds."""
    start = text.index("=") + 1 if text.startswith("[") else 0
    for match in _ELEMENT.finditer(text, start):
        kind = match.lastgroup or ""
        if kind in _STRUCTURE:
            yield _STRUCTURE[kind]
        elif kind == "quoted":
            yield encode(_UNESCAPED.sub(r"\1", match[kind]))
        elif match[kind] == "NULL":
            yield b"null"
        else:
            yield encode(match[kind])
