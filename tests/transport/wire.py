"""Encoding and decoding without a connection, for tests."""

from collections.abc import Mapping

import pytest
from multidict import CIMultiDict

from neonctl_async import APIError, InvalidResponseError, Secret
from neonctl_async.transport.protocol import Request, Response, Wire, request
from tests.support.records import API_KEY

BASE_URL = "https://h.example.com/api/v2"
WIRE = Wire(BASE_URL, [Secret(API_KEY)], max_response_bytes=1 << 20)


def read(
    kind: type[object], body: bytes, status: int = 200, headers: Mapping[str, str] | None = None
) -> object:
    """Decode a response as ``kind``."""
    call: Request[object] = request("GET", "/projects", kind)
    return WIRE.read(call, "sent-id", Response(status, CIMultiDict(headers or {}), body))


def api_error(body: bytes, status: int = 400, headers: Mapping[str, str] | None = None) -> APIError:
    """Return the error that a response with an error status raises."""
    with pytest.raises(APIError) as caught:
        read(dict, body, status, headers)
    return caught.value


def invalid(body: bytes, kind: type[object] = int) -> InvalidResponseError:
    """Return the error that a successful response with an invalid body raises."""
    with pytest.raises(InvalidResponseError) as caught:
        read(kind, body, headers={"Content-Length": str(len(body))})
    return caught.value
