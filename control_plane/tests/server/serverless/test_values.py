"""Values of JSON and their texts in Postgres."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_local.server.serverless.values import decoder, parameter, parse_array

TEXT, INT4, FLOAT8, BOOL, JSONB, INT4_ARRAY, TEXT_ARRAY = 25, 23, 701, 16, 3802, 1007, 1009
ELEMENTS = {INT4_ARRAY: INT4, TEXT_ARRAY: TEXT}


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
    assert parameter(value) == text


@pytest.mark.parametrize(
    ("type_id", "text", "value"),
    [
        (BOOL, "t", True),
        (INT4, "-7", -7),
        (FLOAT8, "42.42", 42.42),
        (FLOAT8, "NaN", "NaN"),
        (FLOAT8, "-Infinity", "-Infinity"),
        (JSONB, '{"a": [null]}', msgspec.Raw(b'{"a": [null]}')),
        (INT4_ARRAY, "[0:1][2:3]={{1,2},{NULL,4}}", [[1, 2], [None, 4]]),
        (TEXT_ARRAY, '{a,"NULL",NULL,"x,\\"y\\\\",""}', ["a", "NULL", None, 'x,"y\\', ""]),
        (INT4_ARRAY, "{}", []),
    ],
)
def test_text_of_postgres_is_a_value(type_id: int, text: str, value: Any) -> None:
    decode = decoder(type_id, ELEMENTS)
    assert decode is not None
    assert decode(text) == value


def test_other_types_stay_texts() -> None:
    assert decoder(20, ELEMENTS) is None  # int8 does not fit into a number of JavaScript


# Postgres has no NUL character in texts. Its arrays have the same length in each dimension, and no
# empty ones inside: the parser does not depend on either.
texts = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]))
arrays = st.recursive(
    st.lists(st.none() | texts), lambda inner: st.lists(inner, min_size=1), max_leaves=20
)


@given(arrays)
def test_array_is_parsed_as_it_was_written(values: list[Any]) -> None:
    text = parameter(values)
    assert text is not None
    assert parse_array(text.decode(), None) == values


@given(st.floats(allow_nan=False))
def test_floats_are_numbers_unless_json_has_none(number: float) -> None:
    decode = decoder(FLOAT8, {})
    assert decode is not None
    found = decode(str(number))
    assert found == number if math.isfinite(number) else found == str(number)
