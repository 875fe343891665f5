"""Posted forms: valid ones are read, all others are refused."""

from contextlib import suppress
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_local.console.access import forms
from neonctl_local.console.access.forms import MAXIMUM_FIELDS, MAXIMUM_VALUE, parse_form
from neonctl_local.errors import ApiError


@pytest.mark.parametrize(
    ("content", "fields"),
    [
        (b"", {}),
        (b"a=1&b=x+y", {"a": "1", "b": "x y"}),
        (b"a", {"a": ""}),
        (b"a=1=2", {"a": "1=2"}),
        (b"=", {"": ""}),
        (b"a=%0D%0A%0d%0Ab%0Ac%0Dd", {"a": "\n\nb\nc\rd"}),
        (b"a=%F0%9F%90%98%E2%80%AE", {"a": "\U0001f418\u202e"}),
        ("a=ä".encode(), {"a": "ä"}),
        (b"a=%zz%4", {"a": "%zz%4"}),
        (b"a=1;b=2", {"a": "1;b=2"}),
    ],
)
def test_form_is_decoded(content: bytes, fields: dict[str, str]) -> None:
    assert parse_form(content) == fields


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        (b"a=1&a=1", 400, "twice"),
        (b"a=1&%61=2", 400, "twice"),
        (b"&", 400, "twice"),
        (b"a=%ff", 400, "UTF-8"),
        (b"%ed%a0%80=1", 400, "UTF-8"),
        (b"a=\xff", 400, "UTF-8"),
        (b"x" * 101 + b"=1", 400, "101 characters"),
        (b"a=" + b"x" * (MAXIMUM_VALUE + 1), 413, "longer than"),
        (b"&".join(b"f%d=" % number for number in range(MAXIMUM_FIELDS + 1)), 413, "too many"),
    ],
)
def test_form_is_refused(content: bytes, status: int, words: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_form(content)
    assert (refused.value.status, words in refused.value.message) == (status, True)


def test_longest_form_is_read() -> None:
    content = b"&".join(b"f%d=" % number for number in range(MAXIMUM_FIELDS))
    assert len(parse_form(content)) == MAXIMUM_FIELDS
    assert len(parse_form(b"a=" + b"x" * MAXIMUM_VALUE)["a"]) == MAXIMUM_VALUE


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=20),
        st.text(st.characters(codec="utf-8", exclude_characters="\r")),
    )
)
def test_every_text_survives(fields: dict[str, str]) -> None:
    encoded = "&".join(f"{quote_plus(name)}={quote_plus(fields[name])}" for name in fields)
    assert parse_form(encoded.encode()) == fields


@given(st.binary(max_size=300))
def test_other_bytes_are_read_or_refused(content: bytes) -> None:
    with suppress(ApiError):
        assert all(isinstance(value, str) for value in parse_form(content).values())


def test_statement_in_the_longest_field_fits_into_a_request() -> None:
    assert 3 * forms.MAXIMUM_VALUE < 1 << 20  # a percent-encoded byte has three characters
