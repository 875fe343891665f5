"""Reads posted forms, whose size is limited."""

from typing import Final
from urllib.parse import unquote_to_bytes

from aiohttp import web

from neonctl_local.errors import ApiError, invalid
from neonctl_local.server.bodies import BODY_ERRORS, read_body

CSRF: Final = "csrf"
"""The name of the field that contains the session's CSRF token."""

MAXIMUM_FIELDS: Final = 100
MAXIMUM_VALUE: Final = 256 << 10
"""The largest size of a field's value, in bytes. SQL statements need the most."""

_FORM: Final = "application/x-www-form-urlencoded"
_MAXIMUM_NAME: Final = 100


async def read_form(request: web.Request) -> dict[str, str]:
    """Return the fields of a posted form, including ``csrf``.

    Raises 415 for any other type of content, 413 for too much of it, 408 if it arrives too late,
    and 400 if it is malformed.
    """
    charset = (request.charset or "utf-8").lower()
    if request.content_type != _FORM or charset != "utf-8":
        sent = request.headers.get("Content-Type", "")
        raise ApiError(415, f"the form is sent as {sent[:100]!r}: expected {_FORM!r} in UTF-8")
    try:
        return parse_form(bytes(await read_body(request)))
    except web.HTTPRequestEntityTooLarge:
        raise ApiError(413, "the form is larger than 1 MiB: send less") from None
    except BODY_ERRORS:
        # Nothing more can be read from this connection.
        headers = {"Connection": "close"}
        raise ApiError(400, "the form has no valid encoding", headers=headers) from None


def parse_form(content: bytes) -> dict[str, str]:
    """Return the fields of an encoded form. Line breaks in values become line feeds."""
    fields: dict[str, str] = {}
    for number, part in enumerate(content.split(b"&", MAXIMUM_FIELDS) if content else ()):
        if number == MAXIMUM_FIELDS:
            raise ApiError(413, f"the form has too many fields: expected up to {MAXIMUM_FIELDS}")
        encoded_name, _, encoded_value = part.partition(b"=")
        name = _decoded(encoded_name)
        if name in fields:
            raise invalid(
                f"the form has the field {name[:_MAXIMUM_NAME]!r} twice: expected it once"
            )
        if len(name) > _MAXIMUM_NAME:
            raise invalid(f"the name of a field has {len(name)} characters: that is too long")
        value = _decoded(encoded_value)
        if len(value.encode()) > MAXIMUM_VALUE:
            raise ApiError(413, f"the field {name!r} is longer than {MAXIMUM_VALUE} bytes")
        # Browsers send the lines of a text area with a carriage return, which nobody typed.
        fields[name] = value.replace("\r\n", "\n")
    return fields


def _decoded(text: bytes) -> str:
    try:
        return unquote_to_bytes(text.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise invalid("the form is not valid UTF-8: send it from a page of the console") from None
