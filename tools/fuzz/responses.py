"""Responses with any status, headers and body: decoding returns a value or raises our error."""

import copy
import gzip
import pickle
from contextlib import suppress
from math import inf
from typing import Any, Literal, cast

import msgspec
from msgspec import inspect
from multidict import CIMultiDict

from neonctl_async import APIError, InvalidResponseError, NeonError, Secret
from neonctl_async.models.secret import HIDDEN, decode_hook
from neonctl_async.transport.protocol import EXCERPT_CHARACTERS, Request, Response, Wire, request
from neonctl_async.transport.redaction import MAX_CHARACTERS
from neonctl_async.types import ApiKey
from tests.models.records import MINIMAL, REQUEST_ONLY
from tests.support.records import API_KEY
from tests.transport.wire import BASE_URL
from tools.fuzz.draw import KEY, Draw, document

MAX_BYTES = 32 * 1024
WIRE = Wire(BASE_URL, [Secret(API_KEY)], max_response_bytes=MAX_BYTES)


class ErrorBody(msgspec.Struct):
    """The fields of an error response, of right and wrong types."""

    code: str | int | list[Any] | None = ""
    message: str | list[Any] | None = ""
    request_id: str | int | list[Any] | None = ""


KINDS: tuple[Any, ...] = (
    list[ApiKey],
    dict[str, Any],
    Any,
    Literal["on", "off"],
    *MINIMAL,
    *REQUEST_ONLY,
)
STATUSES = (200, 201, 204, 301, 400, 401, 403, 404, 409, 423, 429, 500, 503, 599, 999, 0, -1)
ENCODINGS = ("", "gzip", "x-gzip", f"br {API_KEY}")
"""The values of ``Content-Encoding``. Only bodies sent as ``gzip`` are compressed."""
HEADERS = ("Retry-After", "Date", "x-neon-ret-request-id")

_DOCUMENTS = {kind: inspect.type_info(kind) for kind in (*KINDS, ErrorBody)}


def a_response(draw: Draw) -> None:
    """Check that a response is decoded completely, or raises a documented error."""
    kind, status = draw.pick(KINDS), draw.pick(STATUSES)
    encoding = draw.pick(ENCODINGS)
    headers = CIMultiDict((name, draw.text()) for name in HEADERS)
    headers["Content-Encoding"] = encoding
    is_success = 200 <= status < 300
    shape = _DOCUMENTS[kind if is_success else ErrorBody]
    body = draw.rest() if draw.byte() % 2 else document(draw, shape)
    body = body.replace(KEY, API_KEY.encode())
    content = gzip.compress(body, mtime=0) if encoding == "gzip" else body
    headers["Content-Length"] = str(len(content))  # otherwise, invalid JSON may be cut off
    call: Request[object] = request("GET", "/projects", kind)
    try:
        value = WIRE.read(call, "sent-id", Response(status, headers, content))
    except APIError as error:
        assert not is_success
        _check_error(error)
    except InvalidResponseError as error:
        assert is_success
        _check_error(error)
    else:
        assert is_success
        assert len(body) <= MAX_BYTES
        with suppress(RecursionError):  # repr() cannot handle such deep nesting
            _check_value(kind, value)


def _check_error(error: APIError | InvalidResponseError) -> None:
    match error:
        case APIError():
            assert error.retry_after is None or 0 <= error.retry_after < inf
        case InvalidResponseError():
            assert len(error.excerpt) <= EXCERPT_CHARACTERS
    shown = f"{error} {error!r} {error.__cause__} {vars(error)}"
    assert API_KEY not in shown
    assert len(str(error)) <= 3 * MAX_CHARACTERS
    str(error).encode()
    cause = error.__cause__
    assert cause is None or (cause.__traceback__ is None and cause.__context__ is None)
    pickled: NeonError = pickle.loads(pickle.dumps(error))
    for again in (copy.copy(error), copy.deepcopy(error), pickled):
        assert (type(again), str(again)) == (type(error), str(error))
        assert vars(again) == vars(error)


def _check_value(kind: type[object], value: object) -> None:
    assert repr(value)
    assert format(value, "") == str(value)
    assert copy.deepcopy(value) == value
    encoded = msgspec.json.encode(value, enc_hook=_reveal)
    assert msgspec.json.decode(encoded, type=kind, dec_hook=decode_hook) == value
    if HIDDEN not in repr(value):
        assert msgspec.json.encode(value) == encoded


def _reveal(value: object) -> str:
    return cast("Secret", value).reveal()
