"""The bodies of requests: JSON, and forms with files (RFC 7578). Pure: no I/O."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import UNSET

from neonctl_async.models.secret import Secret, encode_hook

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
