"""Patterns of text formats, and the descriptions that replace the patterns in error messages."""

import re
from collections.abc import Iterable
from typing import Final

EMAIL: Final = r"^[^@\s\x00-\x1f\x7f-\x9f]+@[^@\s\x00-\x1f\x7f-\x9f]+\Z"
HTTPS_URL: Final = r"^https://[^/\s]+\S*\Z"
LSN: Final = r"^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}\Z"
URI: Final = r"^[A-Za-z][A-Za-z0-9+.-]*:\S+\Z"
ID: Final = r"^[a-z0-9-]{1,60}\Z"
IDS: Final = r"^([a-z0-9-]{1,60}(,[a-z0-9-]{1,60}){0,99})?\Z"
NAME: Final = r"^(?=.*\S)[^\x00-\x1f\x7f-\x9f\u2028\u2029]*\Z"

DESCRIPTIONS: Final = {
    EMAIL: "an email address",
    HTTPS_URL: "an HTTPS URL",
    LSN: "an LSN like 0/1A2B3C",
    URI: "a URI with its scheme, like https://example.com",
    ID: "an id of 1 to 60 lower-case letters, digits and hyphens",
    IDS: "up to 100 ids of lower-case letters, digits and hyphens, separated by commas",
    NAME: "a name that is not blank and has no line breaks or other control characters",
}

_ONE_OF: Final = "^(?:"


def one_of(values: Iterable[str]) -> str:
    """Return the pattern of an enumeration."""
    return rf"{_ONE_OF}{'|'.join(map(re.escape, values))})\Z"


def to_the_end(pattern: str) -> str:
    """Adapt a published pattern to Python, whose "$" also matches before a trailing line break."""
    return pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern


def describe(pattern: str) -> str:
    """Describe what a pattern matches, for an error message."""
    if pattern.startswith(_ONE_OF):
        values = re.sub(r"\\(.)", r"\1", pattern.removeprefix(_ONE_OF).removesuffix(r")\Z"))
        return f"one of {values.replace('|', ', ')}"
    return DESCRIPTIONS.get(pattern, f"text that matches {pattern!r}")
