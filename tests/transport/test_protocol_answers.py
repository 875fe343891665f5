"""The wire format, without a wire: what is made of what comes back."""

import json

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
from neonctl_async.transport.protocol import (
    Response,
    Wire,
    request,
    retry_after,
)
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
def test_both_forms_of_retry_after(value: str, seconds: float) -> None:
    assert retry_after(CIMultiDict({"retry-after": value, "date": NOW})) == seconds


@pytest.mark.parametrize(
    "value",
    [
        *("", "soon", "-5", "+5", "5s", "5,6", "1e3", "0x10", "inf", "nan", "٣", "99999999999"),
        *("21 Oct", "Wed, 99 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 25:61:00 GMT"),
    ],
)
def test_a_retry_after_that_is_neither_form_counts_as_absent(value: str) -> None:
    assert retry_after(CIMultiDict({"Retry-After": value, "Date": NOW})) is None


def test_no_retry_after() -> None:
    assert retry_after(CIMultiDict({"Date": NOW})) is None


@pytest.mark.parametrize("now", ["", "yesterday", "-1"])
def test_without_a_usable_date_the_local_clock_is_taken(now: str) -> None:
    headers = {"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT", "Date": now}
    asked = retry_after(CIMultiDict(headers))
    assert asked is not None
    assert asked > 1e9


@given(value=st.text(), now=st.text())
def test_no_retry_after_breaks_anything(value: str, now: str) -> None:
    asked = retry_after(CIMultiDict({"Retry-After": value, "Date": now}))
    assert asked is None or 0 <= asked < float("inf")


def test_an_error_carries_retry_after() -> None:
    error = api_error(b"{}", 429, {"Retry-After": "7"})
    assert isinstance(error, RateLimitedError)
    assert error.retry_after == 7.0


def test_an_error_body_as_the_platform_writes_it() -> None:
    told = {"code": "BRANCH_MISSING", "message": "no such branch", "request_id": "req-9"}
    error = api_error(json.dumps(told).encode(), 404)
    assert isinstance(error, NotFoundError)
    assert (error.code, error.message, error.request_id) == (
        "BRANCH_MISSING",
        "no such branch",
        "req-9",
    )
    assert (error.method, error.path, error.status) == ("GET", "/projects", 404)


def test_the_recorded_error_body() -> None:
    message = "invalid request: decode application/json: invalid: project (field required)"
    error = api_error(json.dumps({"code": "", "message": message}).encode())
    assert (error.code, error.message, error.request_id) == ("", message, "sent-id")


@pytest.mark.parametrize(
    ("body", "headers", "request_id"),
    [
        (b'{"request_id":"of-body"}', {"X-Neon-Ret-Request-Id": "of-header"}, "of-body"),
        (b'{"request_id":""}', {"X-Neon-Ret-Request-Id": "of-header"}, "of-header"),
        (b"<html>", {"x-neon-ret-request-id": "of-header"}, "of-header"),
        (b"", {}, "sent-id"),
        (b'{"request_id":null}', {"x-neon-ret-request-id": ""}, "sent-id"),
    ],
)
def test_the_request_id_is_the_platforms_if_it_gives_one(
    body: bytes, headers: dict[str, str], request_id: str
) -> None:
    assert api_error(body, 500, headers).request_id == request_id


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "no explanation given"),
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
def test_an_error_body_of_any_shape_is_told(body: bytes, message: str) -> None:
    error = api_error(body, 502)
    assert isinstance(error, ServerError)
    assert error.message == message


@pytest.mark.parametrize(
    "body",
    [b"[" * 100_000, b'{"a":' * 100_000, b'{"message":' + b"[" * 100_000],
)
def test_an_error_body_nested_too_deep_is_told_too(body: bytes) -> None:
    error = api_error(body, 500)
    assert len(error.message) == 200


def test_an_error_body_that_cannot_be_decompressed_tells_nothing() -> None:
    error = api_error(b"no gzip", 502, {"Content-Encoding": "gzip"})
    assert error.message == "no explanation given"


@pytest.mark.parametrize(("code", "kept"), [(1001, "1001"), (None, ""), ("", ""), ("X", "X")])
def test_a_code_of_any_type_is_kept_as_text(code: object, kept: str) -> None:
    assert api_error(json.dumps({"code": code, "message": "x"}).encode()).code == kept


def test_an_error_body_that_is_huge_is_told_by_its_beginning() -> None:
    body = b'{"message": "no", "code": [' + b"[]," * 400_000 + b"[]]}"
    error = api_error(body)
    assert error.message.startswith('{"message": "no"')
    assert error.code == ""


@pytest.mark.parametrize("status", [300, 301, 302, 307, 308])
def test_a_redirect_is_an_error(status: int) -> None:
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
def test_a_good_status_with_a_bad_body_is_an_invalid_response(
    body: bytes, kind: type[object]
) -> None:
    error = invalid(body, kind)
    assert (error.method, error.path, error.status) == ("GET", "/projects", 200)
    assert error.request_id == "sent-id"
    assert isinstance(error.__cause__, (msgspec.DecodeError, UnicodeDecodeError, RecursionError))


def test_a_body_that_is_not_utf_8_is_said_to_be_none() -> None:
    assert ": not UTF-8; it starts with" in str(invalid(b'{"message":"\xff"}', dict))


def test_an_invalid_response_names_the_platforms_request_id() -> None:
    with pytest.raises(InvalidResponseError) as caught:
        read(dict, b"<html>", 200, {"X-Neon-Ret-Request-Id": "of-header"})
    assert caught.value.request_id == "of-header"


@pytest.mark.parametrize("status", [200, 500])
def test_a_request_id_that_is_no_utf_8_can_be_printed(status: int) -> None:
    # aiohttp decodes headers so that no byte is lost.
    headers = {"X-Neon-Ret-Request-Id": b"id-\xff".decode(errors="surrogateescape")}
    with pytest.raises((APIError, InvalidResponseError)) as caught:
        read(dict, b"<html>", status, headers)
    assert str(caught.value).encode().endswith(b"(request id-?)")


@pytest.mark.parametrize("body", [b"", b"null"])
def test_an_empty_body_is_a_record_of_nothing_or_null(body: bytes) -> None:
    assert read(BranchDeleted, body, 204) == BranchDeleted()
    assert read(type(None), body, 204) is None


def test_a_body_may_be_as_large_as_the_bound_and_no_larger() -> None:
    wire = Wire(BASE_URL, Secret(API_KEY), max_response_bytes=4)
    call = request("GET", "/projects", bool)
    assert wire.read(call, "sent-id", Response(200, {}, b"true")) is True
    with pytest.raises(InvalidResponseError, match="it is larger than 4 bytes"):
        wire.read(call, "sent-id", Response(200, {}, b"false"))


class Login(msgspec.Struct):
    key: Secret
    tries: int = 0


@pytest.mark.parametrize("body", [b'{"key": "k-1"}', b'{"key": "k-1", "tries": null}'])
def test_a_secret_is_read_as_one_beside_null_too(body: bytes) -> None:
    assert read(Login, body) == Login(Secret("k-1"))


def test_null_stands_for_what_is_left_out_however_deep() -> None:
    record = operation_json("op-1", failures_count=None, error=None)
    response = read(OperationsResponse, json.dumps({"operations": [record]}).encode())
    assert response == OperationsResponse(operations=[convert(operation_json("op-1"), Operation)])
