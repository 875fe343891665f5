"""Hints about the probable mistake behind an error response. Pure: no I/O."""

import inspect
import re
from typing import Final
from urllib.parse import unquote, urlsplit

from neonctl_async._internal import kind_of, shorten
from neonctl_async.config import BASE_URL_VARIABLE, DEFAULT_BASE_URL

_WRONG_PATH: Final = frozenset({301, 302, 303, 307, 308, 404, 405})
"""The statuses that servers return for a path that they do not know."""
_VERSION: Final = re.compile(r"/v\d+(?=/|$)")
_PREFIXES: Final = {
    "branches": "br-",
    "endpoints": "ep-",
    "organizations": "org-",
    "snapshots": "snap-",
}
_WORDS: Final = {"projects": {"auth", "shared", "transfer"}, "branches": {"count"}}
"""Path segments that stand where other paths contain an id."""
LEAVE_OUT: Final = "leave the parameter out if it is optional"
"""What to do instead of passing None."""
_PROJECT_ID: Final = re.compile(r"[a-z]+(-[a-z]+)*-\d+")


def address_hint(base_url: str, status: int, *, is_json: bool) -> str:
    """Return a hint that the base URL is wrong, or an empty string.

    ``is_json`` is True if the response body is in the API's format. Call this only before the first
    success, which shows that the base URL is right.
    """
    path = urlsplit(base_url).path
    is_wrong_path = status in _WRONG_PATH
    if not _VERSION.search(path) and status < 500 and (is_wrong_path or not is_json):
        suffix = "/v2" if path.endswith("/api") else "/api/v2"
        return (
            f"the base URL {base_url} has no version segment: if that is the cause, set "
            f"{BASE_URL_VARIABLE} or base_url to {base_url}{suffix}"
        )
    if not is_json and (is_wrong_path or status < 300):
        return (
            f"this is no response of the Neon API: check the base URL {base_url} "
            f"({BASE_URL_VARIABLE} or base_url; Neon's is {DEFAULT_BASE_URL})"
        )
    return ""


def id_hint(path: str) -> str:
    """Return a hint that the path of a 404 has a name in place of an id, or an empty string."""
    segments = path.split("/")[1:]
    for kind, id in zip(segments[::2], map(unquote, segments[1::2]), strict=False):
        if id in _WORDS.get(kind, ()):
            continue
        prefix = _PREFIXES.get(kind, "")
        if not id.startswith(prefix):
            return f"{shorten(id)} does not look like an id: ids of {kind} start with {prefix!r}"
        if kind == "projects" and not _PROJECT_ID.fullmatch(id):
            return (
                f"{shorten(id)} does not look like an id: ids of projects are like "
                "'late-frost-12345678'"
            )
    return ""


def lacks_org(status: int, message: str) -> bool:
    """Return whether a request failed because it did not name an organization."""
    return status == 400 and message.startswith("org_id is required")


def org_hint(status: int, message: str) -> str:
    """Return a hint that a request must name an organization, or an empty string."""
    if lacks_org(status, message):
        return (
            "projects of this account belong to organizations: pass org_id=, with an id of "
            "users.organizations()"
        )
    return ""


def wrong_id(name: str, value: object) -> str:
    """Return the error message for an id or a name that is not a string."""
    return f"{name} is {kind_of(value)}: {_of_record(name, value) or 'expected a string'}"


def wrong_value(name: str, value: object, expected: str) -> str:
    """Return the error message for a value that a request cannot contain."""
    if hint := _of_record(name, value):
        return f"{name} is {kind_of(value)}: {hint}"
    hint = f", or {LEAVE_OUT}" if value is None else ""
    return f"{name} is {shorten(value)}: expected {expected}{hint}"


def _of_record(name: str, value: object) -> str:
    """Return a hint about the part of a record, response or result to pass, or an empty string."""
    part = "name" if name.endswith("name") else "id"
    if inspect.isawaitable(value):
        return f"await the call, and pass the {part} of its result"
    if isinstance(getattr(value, part, None), str):
        return f"pass its {part}, as in record.{part}"
    kind = name.removesuffix(f"_{part}")
    if isinstance(getattr(getattr(value, kind, None), part, None), str):
        return f"pass the {part} of its {kind}, as in response.{kind}.{part}"
    return ""
