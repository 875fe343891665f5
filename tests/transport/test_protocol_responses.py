"""Decoding of responses."""

import json
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from multidict import CIMultiDict

from neonctl_async import (
    APIError,
    InvalidResponseError,
    NotFoundError,
    Operation,
    RateLimitedError,
    Secret,
    ServerError,
)
from neonctl_async.transport.protocol import Response, Wire, request, retry_after
from neonctl_async.types import BranchDeleted, OperationsResponse
from tests.support.records import API_KEY, operation_json
from tests.transport.wire import BASE_URL, api_error, invalid, read

NOW = "Wed, 21 Oct 2026 07:28:00 GMT"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("5", 5.0),
        (" 5 ", 5.0),
        ("1.5", 1.5),
        ("7200", 7200.0),
        ("Wed, 21 Oct 2026 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2026 09:28:00 GMT", 7200.0),
        ("Wed, 21 Oct 2026 09:28:30 +0200", 30.0),
        ("Wednesday, 21-Oct-26 07:28:30 GMT", 30.0),
        ("Wed Oct 21 07:28:30 2026", 30.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
    ],
)
def test_retry_after_is_a_number_or_a_date(value: str, seconds: float) -> None:
    assert retry_after(CIMultiDict({"retry-after": value, "date": NOW})) == seconds


@pytest.mark.parametrize(
    "value",
    [
        *("", "soon", "-5", "+5", "5s", "5,6", "1e3", "0x10", "inf", "nan", "٣", "99999999999"),
        *("21 Oct", "Wed, 99 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 25:61:00 GMT"),
    ],
)
def test_invalid_retry_after_is_ignored(value: str) -> None:
    assert retry_after(CIMultiDict({"Retry-After": value, "Date": NOW})) is None


def test_missing_retry_after_is_none() -> None:
    assert retry_after(CIMultiDict({"Date": NOW})) is None


@pytest.mark.parametrize("now", ["", "yesterday", "-1"])
def test_without_a_valid_date_header_the_local_clock_is_used(now: str) -> None:
    headers = {"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT", "Date": now}
    delay = retry_after(CIMultiDict(headers))
    assert delay is not None
    assert delay > 1e9


@given(value=st.text(), now=st.text())
def test_no_retry_after_raises_an_error(value: str, now: str) -> None:
    delay = retry_after(CIMultiDict({"Retry-After": value, "Date": now}))
    assert delay is None or 0 <= delay < float("inf")


def test_error_has_retry_after() -> None:
    error = api_error(b"{}", 429, {"Retry-After": "7"})
    assert isinstance(error, RateLimitedError)
    assert error.retry_after == 7.0


def test_error_body_of_the_api_is_decoded() -> None:
    body = {"code": "BRANCH_MISSING", "message": "no such branch", "request_id": "req-9"}
    error = api_error(json.dumps(body).encode(), 404)
    assert isinstance(error, NotFoundError)
    assert (error.code, error.message, error.request_id) == (
        "BRANCH_MISSING",
        "no such branch",
        "req-9",
    )
    assert (error.method, error.path, error.status) == ("GET", "/projects", 404)


def test_recorded_error_body_is_decoded() -> None:
    message = "invalid request: decode application/json: invalid: project (field required)"
    error = api_error(json.dumps({"code": "", "message": message}).encode())
    assert (error.code, error.message, error.request_id) == ("", message, "sent-id")


@pytest.mark.parametrize(
    ("body", "headers", "request_id"),
    [
        (b'{"request_id":"from-body"}', {"X-Neon-Ret-Request-Id": "from-header"}, "from-body"),
        (b'{"request_id":""}', {"X-Neon-Ret-Request-Id": "from-header"}, "from-header"),
        (b"<html>", {"x-neon-ret-request-id": "from-header"}, "from-header"),
        (b"", {}, "sent-id"),
        (b'{"request_id":null}', {"x-neon-ret-request-id": ""}, "sent-id"),
    ],
)
def test_request_id_is_taken_from_body_or_header_or_the_request(
    body: bytes, headers: dict[str, str], request_id: str
) -> None:
    assert api_error(body, 500, headers).request_id == request_id


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "no error message"),
        (b"<html><h1>502 Bad Gateway</h1></html>", "<html><h1>502 Bad Gateway</h1></html>"),
        (b"null", "null"),
        (b'["busy"]', '["busy"]'),
        (b'{"error":"busy"}', '{"error":"busy"}'),
        (b'{"message":"","code":"","error":"busy"}', '{"message":"","code":"","error":"busy"}'),
        (b'{"message":7}', '{"message":7}'),
        (b'{"message":"cut o', '{"message":"cut o'),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b'{"message":"\\ud800"}', '{"message":"\\ud800"}'),
    ],
)
def test_error_body_of_any_shape_is_the_message(body: bytes, message: str) -> None:
    error = api_error(body, 502)
    assert isinstance(error, ServerError)
    assert error.message == message


def test_reason_of_an_error_is_an_attribute_and_part_of_the_text() -> None:
    body = {"code": "", "message": "the cursor has expired", "reason": "invalid_cursor"}
    error = api_error(json.dumps(body).encode(), 400)
    assert error.reason == "invalid_cursor"
    assert "400 Bad Request: the cursor has expired (invalid_cursor)" in str(error)


@pytest.mark.parametrize(
    ("reason", "text"), [(None, ""), (7, "7"), ("napi_other", "napi_**********")]
)
def test_reason_of_any_type_becomes_text_without_secrets(reason: object, text: str) -> None:
    assert api_error(json.dumps({"message": "no", "reason": reason}).encode()).reason == text


def test_error_without_a_reason_has_an_empty_one() -> None:
    error = api_error(b'{"message": "no"}', 400)
    assert error.reason == ""
    assert "400 Bad Request: no (request" in str(error)


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"a":' * 100_000, b'{"message":' + b"[" * 100_000]
)
def test_error_body_with_too_deep_nesting_is_the_message(body: bytes) -> None:
    error = api_error(body, 500)
    assert len(error.message) == 200


@pytest.mark.parametrize("depth", [900, 9_000, 20_000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_complete_body_with_deep_nesting_is_a_value_or_an_error_of_the_library(
    opening: bytes, closing: bytes, depth: int
) -> None:
    # The depth that can be decoded depends on the version of CPython and on the stack.
    deep = opening * depth + b"[]" + closing * depth
    for kind, body in (
        (dict, b'{"a":' + deep + b"}"),
        (OperationsResponse, b'{"operations":[],"a":' + deep + b"}"),
        (OperationsResponse, b'{"operations":null,"a":' + deep + b"}"),
    ):
        with suppress(InvalidResponseError):
            assert isinstance(read(kind, body), kind)
    assert api_error(b'{"code":' + deep + b"}", 400).status == 400
    assert api_error(b'{"message":' + deep + b"}", 400).status == 400


def test_error_body_that_cannot_be_decompressed_is_not_shown() -> None:
    error = api_error(b"no gzip", 502, {"Content-Encoding": "gzip"})
    assert error.message == "no error message"


@pytest.mark.parametrize(("code", "text"), [(1001, "1001"), (None, ""), ("", ""), ("X", "X")])
def test_error_code_of_any_type_becomes_text(code: object, text: str) -> None:
    assert api_error(json.dumps({"code": code, "message": "x"}).encode()).code == text


def test_start_of_a_huge_error_body_is_the_message() -> None:
    body = b'{"message": "no", "code": [' + b"[]," * 400_000 + b"[]]}"
    error = api_error(body)
    assert error.message.startswith('{"message": "no"')
    assert error.code == ""


@pytest.mark.parametrize("status", [300, 301, 302, 307, 308])
def test_redirect_is_an_error(status: int) -> None:
    assert api_error(b"", status, {"Location": "https://evil.example.com"}).status == status


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<html>", dict),
        (b"", OperationsResponse),
        (b"{}", OperationsResponse),
        (b"null", OperationsResponse),
        (b'{"operations":{}}', OperationsResponse),
        (b'{"operations":[{"id":1}]}', OperationsResponse),
        (b"{}{}", dict),
        (b"\xff", dict),
        (b"[" * 100_000, list),
        (b'{"a":' * 100_000, dict),
        (b"", list),
    ],
)
def test_successful_response_with_an_invalid_body_is_an_error(
    body: bytes, kind: type[object]
) -> None:
    error = invalid(body, kind)
    assert (error.method, error.path, error.status) == ("GET", "/projects", 200)
    assert error.request_id == "sent-id"
    assert isinstance(error.__cause__, (msgspec.DecodeError, UnicodeDecodeError, RecursionError))


def test_invalid_utf_8_is_named_in_the_error() -> None:
    assert ": Invalid UTF-8 encoded string; it starts with" in str(
        invalid(b'{"message":"\xff"}', dict)
    )


def test_invalid_response_error_has_the_request_id_from_the_header() -> None:
    with pytest.raises(InvalidResponseError) as caught:
        read(dict, b"<html>", 200, {"X-Neon-Ret-Request-Id": "from-header"})
    assert caught.value.request_id == "from-header"


@pytest.mark.parametrize("status", [200, 500])
def test_request_id_with_invalid_utf_8_can_be_printed(status: int) -> None:
    # aiohttp decodes headers with surrogateescape.
    headers = {"X-Neon-Ret-Request-Id": b"id-\xff".decode(errors="surrogateescape")}
    with pytest.raises((APIError, InvalidResponseError)) as caught:
        read(dict, b"<html>", status, headers)
    assert str(caught.value).encode().endswith(b"(request id-?)")


@pytest.mark.parametrize("body", [b"", b"null"])
def test_empty_body_is_an_empty_record_or_none(body: bytes) -> None:
    assert read(BranchDeleted, body, 204) == BranchDeleted()
    assert read(type(None), body, 204) is None


def test_body_larger_than_the_limit_is_refused() -> None:
    wire = Wire(BASE_URL, [Secret(API_KEY)], max_response_bytes=4)
    call = request("GET", "/projects", bool)
    assert wire.read(call, "sent-id", Response(200, {}, b"true")) is True
    with pytest.raises(InvalidResponseError, match="larger than 4 bytes"):
        wire.read(call, "sent-id", Response(200, {}, b"false"))


class Login(msgspec.Struct):
    key: Secret
    attempts: int = 0


@pytest.mark.parametrize("body", [b'{"key": "k-1"}', b'{"key": "k-1", "attempts": null}'])
def test_secret_is_decoded_in_a_record_with_null(body: bytes) -> None:
    assert read(Login, body) == Login(Secret("k-1"))


def test_nested_null_counts_as_a_missing_field() -> None:
    record = operation_json("op-1", failures_count=None, error=None)
    response = read(OperationsResponse, json.dumps({"operations": [record]}).encode())
    assert response == OperationsResponse(operations=[convert(operation_json("op-1"), Operation)])
