"""Decoding of JSON bodies, and the wording of errors that name an invalid field."""

import re
from ast import literal_eval
from itertools import accumulate
from typing import Final, TypeVar

import msgspec

from neonctl_local.api.request import formats
from neonctl_local.errors import invalid

T = TypeVar("T")

MAXIMUM_DEPTH: Final = 128
"""The largest number of nested arrays and objects in a body."""

_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_STEPS: Final = [(byte in b"[{") - (byte in b"]}") for byte in range(256)]
_MISSING: Final = re.compile(
    r"Object missing required field `(?P<name>[^`]+)`(?: - at `\$(?P<at>.*)`)?"
)
_UNKNOWN: Final = re.compile(
    r"Object contains unknown field `(?P<name>[^`]+)`(?: - at `\$(?P<at>.*)`)?"
)
_PATTERN: Final = re.compile(r"`str` matching regex ('.*'|\".*\")")


def decode(content: bytes, kind: type[T]) -> T:
    """Return a JSON body; an empty body is ``{}``. Raise 400 that names an invalid field."""
    if is_too_deep(content):
        problem = f"the body is nested too deeply: use at most {MAXIMUM_DEPTH} levels"
        raise invalid(f"invalid request: decode application/json: {problem}")
    try:
        content.decode()  # msgspec skips unknown fields
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
    """Return what is wrong with a value, without its place, such as "expected `int` >= 1"."""
    problem = str(error).partition(" - at `$")[0]
    problem = _PATTERN.sub(lambda found: formats.describe(literal_eval(found[1])), problem)
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
