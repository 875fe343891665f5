"""Decoding of JSON bodies, the formats of strings, and errors that name an invalid field."""

import re
from ast import literal_eval
from collections.abc import Iterable
from itertools import accumulate
from typing import Final, TypeVar

import msgspec

from neonctl_local.errors import invalid

EMAIL: Final = r"^[^@\s\x00-\x1f\x7f-\x9f]+@[^@\s\x00-\x1f\x7f-\x9f]+\Z"
HTTPS_URL: Final = r"^https://[^/\s]+\S*\Z"
LSN: Final = r"^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}\Z"
URI: Final = r"^[A-Za-z][A-Za-z0-9+.-]*:\S+\Z"
ID: Final = r"^[a-z0-9-]{1,60}\Z"
IDS: Final = r"^([a-z0-9-]{1,60}(,[a-z0-9-]{1,60}){0,99})?\Z"
NAME: Final = r"^(?=.*\S)[^\x00-\x1f\x7f-\x9f\u2028\u2029]*\Z"

_DESCRIPTIONS: Final = {
    EMAIL: "an email address",
    HTTPS_URL: "an HTTPS URL",
    LSN: "an LSN like 0/1A2B3C",
    URI: "a URI with its scheme, like https://example.com",
    ID: "an id of 1 to 60 lower-case letters, digits and hyphens",
    IDS: "up to 100 ids of lower-case letters, digits and hyphens, separated by commas",
    NAME: "a name that is not blank and has no line breaks or other control characters",
}

_ONE_OF: Final = "^(?:"
T = TypeVar("T")

MAXIMUM_DEPTH: Final = 128
"""The maximum depth of nested arrays and objects in a body."""

_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_STEPS: Final = [(byte in b"[{") - (byte in b"]}") for byte in range(256)]
_MISSING: Final = re.compile(
    r"Object missing required field `(?P<name>[^`]+)`(?: - at `\$(?P<at>.*)`)?"
)
_UNKNOWN: Final = re.compile(
    r"Object contains unknown field `(?P<name>[^`]+)`(?: - at `\$(?P<at>.*)`)?"
)
_PATTERN: Final = re.compile(r"`str` matching regex ('.*'|\".*\")")


def one_of(values: Iterable[str]) -> str:
    """Return the pattern of an enumeration."""
    return rf"{_ONE_OF}{'|'.join(map(re.escape, values))})\Z"


def to_the_end(pattern: str) -> str:
    """Adapt a published pattern to Python, whose "$" also matches before a trailing line break."""
    return pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern


def describe_pattern(pattern: str) -> str:
    """Describe what a pattern matches, for an error message."""
    if pattern.startswith(_ONE_OF):
        values = re.sub(r"\\(.)", r"\1", pattern.removeprefix(_ONE_OF).removesuffix(r")\Z"))
        return f"one of {values.replace('|', ', ')}"
    return _DESCRIPTIONS.get(pattern, f"text that matches {pattern!r}")


def decode(content: bytes, kind: type[T]) -> T:
    """Decode a JSON body, or ``{}`` if it is empty. Raise 400 if a field is invalid, naming it."""
    if is_too_deep(content):
        problem = f"the body is nested too deeply: use at most {MAXIMUM_DEPTH} levels"
        raise invalid(f"invalid request: decode application/json: {problem}")
    try:
        content.decode()  # msgspec does not check unknown fields
        body = msgspec.json.decode(content or b"{}", type=kind)
    except msgspec.DecodeError as error:
        problem = _describe(error)
    except UnicodeDecodeError:
        problem = "the body is not UTF-8"
    else:
        return body
    raise invalid(f"invalid request: decode application/json: {problem}")


def is_too_deep(content: bytes) -> bool:
    """Return whether arrays and objects are nested deeper than MAXIMUM_DEPTH.

    The depth at which msgspec raises RecursionError depends on the version of CPython and on the
    size of the stack. On CPython 3.13, a deep body crashes a process whose stack is small.
    """
    if content.count(b"[") + content.count(b"{") <= MAXIMUM_DEPTH:
        return False
    depths = accumulate(map(_STEPS.__getitem__, _STRING.sub(b"", content)))
    return max(depths, default=0) > MAXIMUM_DEPTH


def describe_problem(error: msgspec.ValidationError) -> str:
    """Return what is wrong with a value, without its location, such as "expected `int` >= 1"."""
    problem = str(error).partition(" - at `$")[0]
    problem = _PATTERN.sub(lambda found: describe_pattern(literal_eval(found[1])), problem)
    return f"{problem[:1].lower()}{problem[1:]}"


def _describe(error: msgspec.DecodeError) -> str:
    text = str(error)
    if missing := _MISSING.fullmatch(text):
        return f"invalid: {_field(missing['at'], missing['name'])} (field required)"
    if unknown := _UNKNOWN.fullmatch(text):
        return f"invalid: {_field(unknown['at'], unknown['name'])} (unknown field)"
    if not isinstance(error, msgspec.ValidationError):
        return text
    at = text.partition(" - at `$")[2]
    return f"invalid: {_field(at.rstrip('`')) or 'body'} ({describe_problem(error)})"


def _field(at: str | None, name: str = "") -> str:
    return ".".join(part for part in ((at or "").strip("."), name) if part)
