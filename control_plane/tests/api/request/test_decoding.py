"""Errors for JSON bodies that cannot be decoded."""

from typing import Annotated

import pytest
from msgspec import Meta, Struct

from neonctl_local.api.request.decoding import decode, one_of
from neonctl_local.errors import ApiError


class Inner(Struct, forbid_unknown_fields=True):
    """A part of a body."""

    kind: Annotated[str, Meta(pattern=one_of(["read_only", "a.b"]))]
    code: Annotated[str, Meta(pattern="^[0-9]$")] = "1"


class Body(Struct):
    """A body."""

    inner: Inner
    number: Annotated[int, Meta(ge=1)] = 1


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "invalid: inner (field required)"),
        (b'{"inner": {}}', "invalid: inner.kind (field required)"),
        (b'{"inner": {"x": 1}}', "invalid: inner.x (unknown field)"),
        (b'{"inner": {"kind": "a-b"}}', "invalid: inner.kind (expected one of read_only, a.b)"),
        (b'{"number": 0}', "invalid: number (expected `int` >= 1)"),
        (b"[]", "invalid: body (expected `object`, got `array`)"),
        (b"\xff", "the body is not UTF-8"),
        (b'{"x": "\xff"}', "the body is not UTF-8"),
        (b'{"inner": "\\ud800"}', ""),
        (b"{", ""),
        (b'{"x":' + b"[" * 128, "the body is nested too deeply: use at most 128 levels"),
        (b'{"x":' + b"[" * 128 + b"]" * 128 + b"}", "the body is nested too deeply"),
        (b'{"x":' * 100_000 + b"1" + b"}" * 100_000, "the body is nested too deeply"),
        (b'{"x": "\\"", "y":' + b"[{" * 500_000, "the body is nested too deeply"),
        (b'{"x": "' + b"[" * 100_000, "Input data was truncated"),
        (
            b'{"inner": {"kind": "a.b", "code": "x"}}',
            "invalid: inner.code (expected text that matches '^[0-9]$')",
        ),
    ],
)
def test_error_is_a_400_that_names_the_field(content: bytes, problem: str) -> None:
    with pytest.raises(ApiError) as caught:
        decode(content, Body)
    assert caught.value.status == 400
    assert caught.value.message.startswith(f"invalid request: decode application/json: {problem}")


@pytest.mark.parametrize(
    "ignored",
    [
        pytest.param(b"[" * 127 + b"]" * 127, id="128 levels"),
        pytest.param(b"[" + b"[], {}, " * 1_000 + b"[]]", id="many arrays and objects"),
        pytest.param(b'["", "' + b"[" * 1_000 + b'"]', id="brackets in a text"),
        pytest.param(b'["\\"' + b"{" * 1_000 + b'\\\\"]', id="brackets in a text with escapes"),
    ],
)
def test_body_with_at_most_128_levels_is_decoded(ignored: bytes) -> None:
    body = decode(b'{"inner": {"kind": "a.b"}, "x": ' + ignored + b"}", Body)
    assert body == Body(Inner("a.b"))
