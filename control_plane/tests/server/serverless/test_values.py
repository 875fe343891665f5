"""Values of JSON and their texts in Postgres."""

import math
import re
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_local.server.serverless.values import (
    VALUE_BYTES,
    array_json,
    encoder,
    memory_of,
    parameter,
)

BOOL, INT8, INT4, TEXT, FLOAT8 = 16, 20, 23, 25, 701
INT4_ARRAY, TEXT_ARRAY, JSONB = 1007, 1009, 3802
ELEMENTS = {INT4_ARRAY: INT4, TEXT_ARRAY: TEXT}


def converted(value: Any) -> bytes | None:
    return parameter(msgspec.Raw(msgspec.json.encode(value)))


def encoded(type_id: int, text: str) -> Any:
    """Return the value that a text becomes, which is the same at once and in pieces."""
    small, large = encoder(type_id, ELEMENTS)
    content = text.encode()
    assert small(content) == b"".join(large(memoryview(content)))
    return msgspec.json.decode(small(content))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, b"true"),
        (1.5, b"1.5"),
        ('"x"', b'"x"'),
        ({"a": [1]}, b'{"a":[1]}'),
        ([1, None, [True]], b"{1,NULL,{true}}"),
        (['a"b', "c\\d", "NULL", "line\nbreak"], b'{"a\\"b","c\\\\d","NULL","line\nbreak"}'),
        ([{"a": "b"}], b'{"{\\"a\\":\\"b\\"}"}'),
    ],
)
def test_parameter_is_a_text_of_postgres(value: Any, text: bytes | None) -> None:
    assert converted(value) == text


@pytest.mark.parametrize(
    ("type_id", "text", "value"),
    [
        (BOOL, "t", True),
        (INT4, "-7", -7),
        (INT8, "7", "7"),  # it may not fit into a number of JavaScript
        (FLOAT8, "42.42", 42.42),
        (FLOAT8, "NaN", "NaN"),
        (FLOAT8, "-Infinity", "-Infinity"),
        (TEXT, 'a"b\\ä', 'a"b\\ä'),
        (JSONB, '{"a": [null]}', {"a": [None]}),
        (INT4_ARRAY, "[0:1][2:3]={{1,2},{NULL,4}}", [[1, 2], [None, 4]]),
        (TEXT_ARRAY, '{a,"NULL",NULL,"x,\\"y\\\\",""}', ["a", "NULL", None, 'x,"y\\', ""]),
        (TEXT_ARRAY, "[0:2]={=,a=b,=}", ["=", "a=b", "="]),
        (INT4_ARRAY, "{}", []),
    ],
)
def test_text_of_postgres_is_a_value(type_id: int, text: str, value: Any) -> None:
    assert encoded(type_id, text) == value


# Postgres has no NUL character in texts. Its arrays have the same length in each dimension, and no
# empty ones inside: the conversion does not depend on either.
texts = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"])) | st.text(
    alphabet='={}[]:,"\\ NULl', max_size=4
)
arrays = st.recursive(
    st.lists(st.none() | texts), lambda inner: st.lists(inner, min_size=1), max_leaves=20
)


NEEDS_QUOTES = re.compile(r'|null|.*[\\"{}, \t\n\r\v\f].*', re.DOTALL | re.IGNORECASE)


def written(value: list[Any] | str | None) -> str:
    """Return an array or an element as Postgres writes it, which quotes only what it has to."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return f"{{{','.join(map(written, value))}}}"
    if not NEEDS_QUOTES.fullmatch(value):
        return value
    escaped = value.replace("\\", r"\\").replace('"', r"\"")
    return f'"{escaped}"'


@given(arrays, st.sampled_from(["", "[0:1]=", "[-1:1][2:3]="]))
def test_array_is_parsed_as_postgres_writes_it(values: list[Any], bounds: str) -> None:
    """It is parsed as this module writes it, too, with quotes around each text."""
    ours = converted(values)
    assert ours is not None
    for text in (bounds + written(values), ours.decode()):
        found = b"".join(array_json(text, msgspec.json.encode))
        assert msgspec.json.decode(found) == values


@given(texts, st.integers(1, 5))
def test_long_texts_are_not_cut_within_a_character(text: str, times: int) -> None:
    long = (text or "ä") * (times * 20_000)
    assert encoded(TEXT, long) == long


@given(st.floats(allow_nan=False))
def test_floats_are_numbers_unless_json_has_none(number: float) -> None:
    found = encoded(FLOAT8, str(number))
    assert found == number if math.isfinite(number) else found == str(number)


@pytest.mark.parametrize("piece", ["[]", "{}", '""', "1.5", '{"a":1}', "[[1]]", "null"])
def test_memory_of_an_array_is_not_underestimated(piece: str) -> None:
    raw = msgspec.Raw(f"[{','.join([piece] * 20_000)}]".encode())
    tracemalloc.start()
    value = msgspec.json.decode(raw)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(value) == 20_000
    assert used <= memory_of(bytes(raw))


@given(st.lists(st.text(alphabet='",[{:\\ä\n', min_size=1), min_size=1))
def test_separators_in_texts_need_no_memory(texts: list[str]) -> None:
    many = texts * (100_000 // sum(map(len, texts)))  # of several pieces
    body = msgspec.json.encode(many)
    assert memory_of(body) == VALUE_BYTES * len(many) or len(body) < 70_000
