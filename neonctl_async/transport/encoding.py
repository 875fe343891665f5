"""What a request sends: ids and keys in its path, its query, and its body. Pure: no I/O."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import msgspec
from msgspec import UNSET, UnsetType

from neonctl_async._internal import shorten
from neonctl_async.models.secret import Secret, encode_hook
from neonctl_async.transport.hints import wrong_id

MAX_ID_CHARACTERS: Final = 256
"""The length of the longest id. The longest ids and names of Neon have 63 characters."""
MAX_KEY_CHARACTERS: Final = 1024
"""The length of the longest object key."""
KEYS: Final = frozenset({"object_key"})
"""The parameters that may contain ``/``. Neon requires it percent-encoded, as ``%2F``."""

_SEPARATOR: Final = re.compile(r"[/\\]")


def path_segment(name: str, value: str | int) -> str:
    """Return an id or an object key as one percent-encoded segment of a path.

    Raises ValueError or TypeError, with the name of the parameter, for an id that is empty, is too
    long, or would change the path.
    """
    if are_plain((value,)):
        return str(value)
    if isinstance(value, bool) or not isinstance(value, str | int):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
        raise TypeError(wrong_id(name, value))
    text = str(value)
    if name in KEYS:
        return _key_segment(name, text)
    if text in {"", ".", ".."} or "/" in text:
        raise ValueError(
            f"{name} is {shorten(text)}: expected an id that is not empty, '.' or '..' and has no "
            "'/', which would change the path"
        )
    return quote(check_utf8(name, check_length(name, text, MAX_ID_CHARACTERS)), safe="")


def are_plain(ids: tuple[Any, ...]) -> bool:
    """Return whether all ids are strings that need no encoding and no further check."""
    try:
        text = "".join(ids)
    except TypeError:
        return False
    is_plain = text.isascii() and text.replace("-", "").isalnum()
    return is_plain and "" not in ids and len(text) <= MAX_ID_CHARACTERS


def _key_segment(name: str, key: str) -> str:
    # A proxy may decode %2F and then resolve '..', so that another object or even another kind of
    # object would be read or deleted.
    if not key or {".", ".."} & set(_SEPARATOR.split(key)):
        raise ValueError(
            f"{name} is {shorten(key)}: expected a key that is not empty and has no part '.' or "
            "'..' between slashes, which would change the path"
        )
    return quote(check_utf8(name, check_length(name, key, MAX_KEY_CHARACTERS)), safe="")


QueryValue: TypeAlias = str | int | float | datetime | list[str] | tuple[str, ...] | UnsetType


def query_items(query: Mapping[str, QueryValue] | None) -> tuple[tuple[str, str], ...]:
    """Return the names and values of a query. A list repeats its name.

    Raises ValueError or TypeError, with the name of the parameter, for a value that cannot be sent.
    """
    return tuple(_items(query)) if query else ()


def check_aware(name: str, value: datetime) -> datetime:
    """Return ``value``. Raises ValueError if it has no time zone."""
    if value.utcoffset() is None:
        raise ValueError(
            f"{name} is {value.isoformat()}: expected a datetime with a time zone, "
            "as from datetime.now(UTC)"
        )
    return value


def _items(query: Mapping[str, QueryValue]) -> Iterator[tuple[str, str]]:
    for name, value in query.items():
        check_utf8("a name in query", name)
        match value:
            case UnsetType():
                pass
            case list() | tuple():
                yield from ((name, _text(name, item)) for item in value)
            case _:
                yield name, _text(name, value)


def _text(name: str, value: object) -> str:
    match value:
        case str():
            return check_utf8(name, value)
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case datetime():
            return _utc(name, value).isoformat()
        case _:
            raise TypeError(
                f"{name} is {shorten(value)}: expected a string, number, bool or datetime"
            )


def _utc(name: str, value: datetime) -> datetime:
    try:
        return check_aware(name, value).astimezone(UTC)
    except OverflowError:
        raise ValueError(
            f"{name} is {value.isoformat()}: expected years 1 to 9999 in UTC"
        ) from None


JSON: Final = "application/json"
"""The ``Content-Type`` of a JSON body."""
_NOT_UTF8: Final = (
    "a text of the body cannot be written as UTF-8: it has a surrogate, as from os.fsdecode() or "
    "errors='surrogateescape'"
)


class File(msgspec.Struct, frozen=True):
    """A file in a form. Its repr shows no content."""

    name: str
    content: bytes
    content_type: str

    def __repr__(self) -> str:
        return f"<File {self.name}>"


class Form(msgspec.Struct, frozen=True):
    """A ``multipart/form-data`` body: texts and files by the name of their field.

    The names must be plain ASCII words. The repr shows no content.
    """

    fields: Mapping[str, str | Secret | File]

    def __repr__(self) -> str:
        return f"<Form {', '.join(self.fields)}>"


def encode(body: object) -> tuple[bytes | None, str]:
    """Return a body as bytes, and its ``Content-Type``. UNSET means no body.

    Raises TypeError for a value that JSON does not know, and ValueError for a text that UTF-8
    cannot encode.
    """
    if body is UNSET:
        return None, JSON
    if isinstance(body, Form):
        boundary = os.urandom(16).hex()
        parts = b"".join(_parts(body, boundary.encode()))
        return parts, f"multipart/form-data; boundary={boundary}"
    return encode_json(body), JSON


def encode_json(body: object) -> bytes:
    """Return a body as JSON, in which each :class:`SentSecret` has its value.

    Raises TypeError for a value that JSON does not know, and ValueError for a text that UTF-8
    cannot encode.
    """
    with suppress(UnicodeEncodeError):  # the error contains the text, which may be a secret
        return msgspec.json.encode(body, enc_hook=encode_hook)
    raise ValueError(_NOT_UTF8)


def _parts(form: Form, boundary: bytes) -> Iterator[bytes]:
    for name, value in form.fields.items():
        head = f'Content-Disposition: form-data; name="{name}"'
        if isinstance(value, File):
            head += f'; filename="{value.name}"\r\nContent-Type: {value.content_type}'
        yield from (b"--", boundary, b"\r\n", head.encode(), b"\r\n\r\n")
        yield _content(value)
        yield b"\r\n"
    yield from (b"--", boundary, b"--\r\n")


def _content(value: str | Secret | File) -> bytes:
    if isinstance(value, File):
        return value.content
    with suppress(UnicodeEncodeError):  # the error contains the text, which may be a secret
        return (value.reveal() if isinstance(value, Secret) else value).encode()
    raise ValueError(_NOT_UTF8)


def check_length(name: str, text: str, maximum: int) -> str:
    """Return ``text``. Raises ValueError if it is longer than ``maximum`` characters."""
    if len(text) > maximum:
        raise ValueError(
            f"{name} is {shorten(text)}, with {len(text)} characters: expected at most {maximum}"
        )
    return text


def check_utf8(name: str, text: str) -> str:
    """Return ``text``. Raises ValueError if it has characters that UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} is {shorten(text)}: it cannot be written as UTF-8") from None
    return text
