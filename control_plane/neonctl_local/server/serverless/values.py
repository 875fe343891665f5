"""Values of JSON as texts of Postgres, and texts of Postgres as values of JSON. Pure.

The rules are those of Neon's proxy.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

Json: TypeAlias = (
    "bool | int | float | str | msgspec.Raw | Sequence[Json] | Mapping[str, Json] | None"
)
"""A value that msgspec encodes as JSON."""

Decoder: TypeAlias = Callable[[str], Json]

_BOOL, _INT2, _INT4, _FLOAT4, _FLOAT8, _JSON, _JSONB = 16, 21, 23, 700, 701, 114, 3802
_ESCAPED: Final = re.compile(r'[\\"]')
_ELEMENT: Final = re.compile(
    r'(?P<open>\{)|(?P<close>\})|,|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^{},"]+)', re.DOTALL
)
_UNESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def parameter(value: Json) -> bytes | None:
    """Return the text of a parameter, or None for NULL."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list):
        return _array(value).encode()
    return msgspec.json.encode(value)


def _array(values: Sequence[Json]) -> str:
    """Return an array of Postgres. Postgres itself finds elements of different types."""
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


def decoder(type_id: int, element_ids: Mapping[int, int]) -> Decoder | None:
    """Return the function that converts texts of a type, or None if they stay texts.

    ``element_ids`` has the type of the elements of each array type.
    """
    element_id = element_ids.get(type_id)
    if element_id is not None:
        decode = _DECODERS.get(element_id)
        return lambda text: parse_array(text, decode)
    return _DECODERS.get(type_id)


def _float(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text  # JSON has no NaN and no infinities


_DECODERS: Final[Mapping[int, Decoder]] = {
    _BOOL: lambda text: text == "t",
    _INT2: int,
    _INT4: int,
    _FLOAT4: _float,
    _FLOAT8: _float,
    _JSON: lambda text: msgspec.Raw(text.encode()),
    _JSONB: lambda text: msgspec.Raw(text.encode()),
}


def parse_array(text: str, decode: Decoder | None) -> Json:
    """Return the values of an array of Postgres, such as ``{1,NULL,{2,3}}``. Drop its bounds."""
    if text.startswith("["):
        text = text.partition("=")[2]
    root: list[Json] = []
    open_lists = [root]
    for match in _ELEMENT.finditer(text):
        if match["open"]:
            inner: list[Json] = []
            open_lists[-1].append(inner)
            open_lists.append(inner)
        elif match["close"]:
            open_lists.pop()
        elif match["quoted"] is not None:
            value = _UNESCAPED.sub(r"\1", match["quoted"])
            open_lists[-1].append(decode(value) if decode else value)
        elif match["bare"] is not None:
            bare = match["bare"]
            null = bare == "NULL"
            open_lists[-1].append(None if null else decode(bare) if decode else bare)
    return root[0]
