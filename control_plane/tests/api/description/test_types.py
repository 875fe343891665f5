"""Published schemas as types for msgspec."""

import msgspec
import pytest

from neonctl_local.api.description.checks import Types
from neonctl_local.api.description.published import Schema

INTEGER = Schema(type="integer")
TEXT = Schema(type="string")


def accepts(schema: Schema, content: bytes) -> bool:
    """Return whether JSON matches a schema, with the named schema ``Text``."""
    try:
        msgspec.json.decode(content, type=Types({"Text": TEXT}).of(schema))
    except msgspec.ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("schema", "accepted", "refused"),
    [
        (INTEGER, [b"1", b"-1", b"9223372036854775807"], [b"1.5", b"true", b"9223372036854775808"]),
        (Schema(type="integer", format="int32"), [b"2147483647"], [b"2147483648"]),
        (Schema(type="integer", minimum=1, maximum=2), [b"1", b"2"], [b"0", b"3"]),
        (Schema(type="number", minimum=0.25), [b"0.25", b"1"], [b"0.2", b'"1"']),
        (Schema(type="boolean"), [b"true"], [b"1", b'"true"']),
        (Schema(type="string", min_length=1, max_length=2), [b'"ab"'], [b'""', b'"abc"']),
        (Schema(type="string", pattern="^[a-z]$"), [b'"a"'], [b'"ab"', b'"a\\n"']),
        (Schema(type="string", pattern="b"), [b'"abc"'], [b'"a"']),
        (Schema(type="string", enum=["a.c", "b"]), [b'"a.c"', b'"b"'], [b'"abc"', b'"a"']),
        (
            Schema(type="string", format="date-time"),
            [b'"2026-01-01T00:00:00Z"'],
            [b'"2026-01-01T00:00:00"', b'"2026-01-01"'],
        ),
        (Schema(type="string", format="email", max_length=5), [b'"a@b.c"'], [b'"a"', b'"a@b.cd"']),
        (
            Schema(type="string", format="uri"),
            [b'"https://example.com"', b'"app.example:/signed-in"'],
            [b'"example.com"', b'"https:"', b'"https://a b"', b'"1:2"'],
        ),
        (
            Schema(type="string", format="uuid"),
            [b'"123e4567-e89b-12d3-a456-426614174000"'],
            [b'"1"'],
        ),
        (Schema(type="array", items=INTEGER, max_items=1), [b"[]", b"[1]"], [b"[1, 2]", b'["a"]']),
        (Schema(type="array"), [b'[1, "a"]'], [b"1"]),
        (
            Schema(type="object", additional_properties=TEXT, max_properties=1),
            [b"{}", b'{"a": "b"}'],
            [b'{"a": 1}', b'{"a": "b", "c": "d"}'],
        ),
        (
            Schema(type="object", properties={"from": INTEGER, "to": TEXT}, required=["from"]),
            [b'{"from": 1}', b'{"from": 1, "to": "a", "x": null}'],
            [b"{}", b'{"from": 1, "to": null}', b"[]"],
        ),
        (Schema(type="string", nullable=True), [b"null", b'"a"'], [b"1"]),
        (Schema(ref="Text"), [b'"a"'], [b"1", b"null"]),
    ],
    ids=str,
)
def test_type_accepts_what_the_schema_allows(
    schema: Schema, accepted: list[bytes], refused: list[bytes]
) -> None:
    assert [content for content in accepted if not accepts(schema, content)] == []
    assert [content for content in refused if accepts(schema, content)] == []


def test_type_of_a_named_schema_is_built_once() -> None:
    types = Types({"Object": Schema(type="object", properties={"a": TEXT})})
    assert types.of(Schema(ref="Object")) is types.of(Schema(ref="Object"))
