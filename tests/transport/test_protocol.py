"""The wire format, without a wire."""

import json
import traceback
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET
from multidict import CIMultiDict

from neonctl_async import (
    APIError,
    BranchDeleted,
    InvalidResponseError,
    NotFoundError,
    OperationStatus,
    RateLimitedError,
    Secret,
    ServerError,
    Started,
    __version__,
)
from neonctl_async.transport.protocol import (
    Answer,
    QueryValue,
    Request,
    Wire,
    check_page_size,
    raw_request,
    request,
    retry_after,
)
from tests.support.records import API_KEY

BASE_URL = "https://h.example.com/api/v2"
WIRE = Wire(BASE_URL, Secret(API_KEY))
TEMPLATE = "/projects/{project_id}/operations"
HOSTILE = st.text(st.sampled_from("./\\%2eEfF?#;:@&=+ \x00\r\n\u202e\ud800é\uff0eab"), max_size=8)


def url_of(id: str | int) -> str:
    return WIRE.url(request("GET", TEMPLATE, Started, project_id=id))


def query_of(query: Mapping[str, QueryValue]) -> list[tuple[str, str]]:
    url = WIRE.url(request("GET", "/projects", Started, query=query))
    return parse_qsl(urlsplit(url).query, keep_blank_values=True, strict_parsing=bool(query))


def read(
    kind: type[object],
    body: bytes,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> object:
    call: Request[object] = request("GET", "/projects", kind)
    return WIRE.read(call, "sent-id", Answer(status, CIMultiDict(headers or {}), body))


def api_error(body: bytes, status: int = 400, headers: Mapping[str, str] | None = None) -> APIError:
    with pytest.raises(APIError) as caught:
        read(dict, body, status, headers)
    return caught.value


def invalid(body: bytes, kind: type[object] = int) -> InvalidResponseError:
    with pytest.raises(InvalidResponseError) as caught:
        read(kind, body)
    return caught.value


@given(id=st.one_of(st.text(), HOSTILE))
@example(id="%2e%2e")
@example(id="a%2Fb")
@example(id="\\..")
@example(id="..;")
def test_an_id_stays_within_its_segment_or_is_refused(id: str) -> None:
    try:
        url = url_of(id)
    except ValueError:
        return
    assert url.startswith(f"{BASE_URL}/")
    assert url.isascii()
    assert not urlsplit(url).query
    assert not urlsplit(url).fragment
    segments = urlsplit(url).path.split("/")
    assert len(segments) == 6
    assert unquote(segments[4], errors="strict") == id
    assert segments[4] not in {"", ".", ".."}


@pytest.mark.parametrize("id", ["", ".", "..", "/", "a/b", "../..", "/etc", "a/../b"])
def test_an_id_that_is_empty_or_would_change_the_path_is_refused(id: str) -> None:
    with pytest.raises(ValueError, match=r"project_id is .*: expected an id"):
        url_of(id)


@pytest.mark.parametrize("id", ["\ud800", "a\udfffb"])
def test_an_id_that_is_no_unicode_is_refused_by_name(id: str) -> None:
    with pytest.raises(ValueError, match="project_id"):
        url_of(id)


@pytest.mark.parametrize("id", [True, False, None, 1.5, b"p-1", ["p-1"]])
def test_an_id_that_is_no_string_is_refused_by_name(id: object) -> None:
    with pytest.raises(TypeError, match=r"project_id is .*: expected a string"):
        url_of(id)  # type: ignore[arg-type]  # callers without a type checker


@pytest.mark.parametrize(
    ("id", "segment"),
    [
        ("late-frost-12345678", "late-frost-12345678"),
        (42, "42"),
        ("a b", "a%20b"),
        ("ü", "%C3%BC"),
        ("%2e%2e", "%252e%252e"),
        ("?x=1#y", "%3Fx%3D1%23y"),
        ("a+b&c", "a%2Bb%26c"),
        ("a\\b", "a%5Cb"),
        ("\r\nHost: evil", "%0D%0AHost%3A%20evil"),
        (OperationStatus.FAILED, "failed"),
    ],
)
def test_an_id_is_percent_encoded(id: str | int, segment: str) -> None:
    assert url_of(id) == f"{BASE_URL}/projects/{segment}/operations"


def test_the_route_is_the_template_whatever_the_id() -> None:
    call = request("GET", TEMPLATE, Started, project_id="p-1")
    assert call.route == "GET " + TEMPLATE.replace("{project_id}", "{id}")


@given(
    query=st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8"))
    )
)
def test_a_query_decodes_to_what_was_given(query: dict[str, str]) -> None:
    assert query_of(query) == list(query.items())


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("2022-12-09T08:47:52.20417Z", ["2022-12-09T08:47:52.20417Z"]),
        ("", [""]),
        (100, ["100"]),
        (0.25, ["0.25"]),
        (True, ["true"]),
        (False, ["false"]),
        (OperationStatus.FAILED, ["failed"]),
        (UNSET, []),
        (["a", "b,c"], ["a", "b,c"]),
        ([], []),
        (datetime(2026, 1, 1, 12, tzinfo=UTC), ["2026-01-01T12:00:00+00:00"]),
        (
            datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2))),
            ["2026-01-01T10:00:00+00:00"],
        ),
    ],
)
def test_each_kind_of_query_value(value: QueryValue, sent: list[str]) -> None:
    assert query_of({"x": value}) == [("x", one) for one in sent]


def test_a_query_of_nothing_leaves_no_question_mark() -> None:
    assert (
        WIRE.url(request("GET", "/projects", Started, query={"a": UNSET})) == f"{BASE_URL}/projects"
    )


def test_a_cursor_is_percent_encoded() -> None:
    url = WIRE.url(request("GET", "/projects", Started, query={"cursor": "a+b/c= &d"}))
    assert url.endswith("?cursor=a%2Bb%2Fc%3D%20%26d")


def test_a_naive_datetime_names_no_moment() -> None:
    with pytest.raises(ValueError, match=r"since is 2026-01-01T00:00:00: .*time zone"):
        query_of({"since": datetime(2026, 1, 1)})  # noqa: DTZ001 - the point of the test


@pytest.mark.parametrize("value", [None, b"ab", date(2026, 1, 1), object(), [None]])
def test_a_query_value_of_no_known_kind_is_refused_by_name(value: object) -> None:
    with pytest.raises(TypeError, match="since"):
        query_of({"since": value})  # type: ignore[dict-item]  # callers without a type checker


def test_a_query_value_that_is_no_unicode_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="search"):
        query_of({"search": "\ud800"})


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/regions", "GET /regions"),
        ("/projects/p-1/branches/br-2", "GET /projects/{id}/branches/{id}"),
        ("/users/me", "GET /users/me"),
        ("/a%20b/c@d", "GET /{id}/c@d"),
    ],
)
def test_a_raw_request_goes_below_the_base_url(path: str, route: str) -> None:
    call = raw_request("get", path, Started)
    assert WIRE.url(call) == f"{BASE_URL}{path}"
    assert (call.method, call.route) == ("GET", route)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "projects",
        "//evil.example.com/x",
        "https://evil.example.com/x",
        "@evil.example.com",
        "/projects/",
        "/projects//x",
        "/..",
        "/../x",
        "/a/../b",
        "/a/./b",
        "/a/%2e%2e/b",
        "/a/.%2E/b",
        "/a%2Fb",
        "/a%5cb",
        "/a\\b",
        "/a?b=1",
        "/a#b",
        "/a b",
        "/a\n",
        "/a\r\nHost: evil",
        "/é",
        "/%",
        "/%4",
        "/%zz",
        "/\ud800",
    ],
)
def test_a_raw_path_that_could_leave_the_base_url_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"^path is "):
        raw_request("GET", path, Started)


@given(path=st.lists(HOSTILE).map(lambda parts: "/" + "/".join(parts)))
def test_whatever_raw_path_is_taken_has_no_segment_that_moves(path: str) -> None:
    try:
        url = WIRE.url(raw_request("GET", path, Started))
    except ValueError:
        return
    assert url == f"{BASE_URL}{path}"
    segments = [unquote(segment) for segment in urlsplit(url).path.split("/")[1:]]
    assert not {"", ".", ".."} & set(segments)
    assert not any(character in segment for segment in segments for character in "/\\")
    assert not urlsplit(url).query
    assert not urlsplit(url).fragment


@pytest.mark.parametrize("method", ["", "GET ", "GE T", "GET\r\nX: y", "GÉT", "GET\n"])
def test_a_method_that_is_no_name_is_refused(method: str) -> None:
    with pytest.raises(ValueError, match=r"^method is "):
        raw_request(method, "/projects", Started)


def test_the_headers_hold_no_key() -> None:
    headers = WIRE.headers(request("GET", "/projects", Started), "req-1")
    assert headers == {
        "Accept": "application/json",
        "User-Agent": f"neonctl-async/{__version__}",
        "X-Request-ID": "req-1",
    }
    assert WIRE.authorization() == f"Bearer {API_KEY}"


@pytest.mark.parametrize(
    ("body", "sent"),
    [({"a": [1, None]}, b'{"a":[1,null]}'), (None, b"null"), ({}, b"{}"), ([], b"[]")],
)
def test_a_body_is_json_and_says_so(body: object, sent: bytes) -> None:
    call = raw_request("POST", "/projects", Started, body=body)
    assert call.body == sent
    assert WIRE.headers(call, "req-1")["Content-Type"] == "application/json"


def test_without_a_body_none_is_sent() -> None:
    assert raw_request("POST", "/projects", Started).body is None


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


@pytest.mark.parametrize("name", ["code", "message", "request_id"])
def test_an_error_body_that_echoes_the_key_does_not_show_it(name: str) -> None:
    error = api_error(json.dumps({name: f"bad key {API_KEY}"}).encode(), 400)
    assert API_KEY not in f"{error} {error!r} {error.code} {error.message} {error.request_id}"


@pytest.mark.parametrize(("code", "kept"), [(1001, "1001"), (None, ""), ("", ""), ("X", "X")])
def test_a_code_of_any_type_is_kept_as_text(code: object, kept: str) -> None:
    assert api_error(json.dumps({"code": code, "message": "x"}).encode()).code == kept


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_an_error(status: int) -> None:
    assert api_error(b"", status, {"Location": "https://evil.example.com"}).status == status


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<html>", dict),
        (b"", Started),
        (b"{}", Started),
        (b"null", Started),
        (b'{"operations":{}}', Started),
        (b'{"operations":[{"id":1}]}', Started),
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


def test_an_invalid_response_names_the_platforms_request_id() -> None:
    with pytest.raises(InvalidResponseError) as caught:
        read(dict, b"<html>", 200, {"X-Neon-Ret-Request-Id": "of-header"})
    assert caught.value.request_id == "of-header"


def test_an_empty_body_is_a_record_of_nothing() -> None:
    assert read(BranchDeleted, b"", 204) == BranchDeleted()


@pytest.mark.parametrize(("length", "shown"), [(0, 0), (199, 199), (200, 200), (201, 200)])
def test_the_excerpt_is_the_first_200_characters(length: int, shown: int) -> None:
    assert invalid(b"x" * length).excerpt == "x" * shown


def test_the_excerpt_counts_characters_not_bytes() -> None:
    assert invalid("é".encode() * 300).excerpt == "é" * 200


@pytest.mark.parametrize(
    "text",
    [
        '{"id":1,"key":"hunter2","name":"ci"}',
        '{"key" : "hunter2"}',
        '{"api_key":"hunter2"}',
        '{"PASSWORD":"hunter2"}',
        '{"password":"hunter2',
        '{"password":"a\\"hunter2"}',
        '{"password":"a\\\\","token":"hunter2"}',
        '{"connection_uri":"postgresql://ada:hunter2@h/db"}',
        '{"connection_uris":["postgresql://ada:hunter2@h/db"]}',
        '{"secret_server_key":"hunter2","s3_secret_access_key":"hunter2"}',
        '{"client_secret":"hunter2","api_token":"hunter2"}',
        "cannot reach postgresql://ada:hunter2@h/db now",
        "cannot reach postgresql://ada:hunter2",
        "cannot reach postgresql://ada:pa'hunter2@h/db now",
        "cannot reach postgresql://:hunter2@h/db",
        "Authorization: Bearer hunter2",
        "the key napi_hunter2 is bad",
        "the key neon_org_key_hunter2 is bad",
        '{"message":"{\\"password\\":\\"hunter2\\"}"}',
        '{"accessToken":"hunter2"}',
        '{"apiKey":"hunter2"}',
        "host=h user=ada password=hunter2 dbname=db",
        "<html>\npostgresql://ada:hunter2\n",
    ],
)
def test_the_excerpt_hides_secrets(text: str) -> None:
    error = invalid(f"{text}".encode())
    shown = "".join(traceback.format_exception_only(error)) + error.excerpt
    assert "hunter2" not in shown
    assert "***" in error.excerpt


@given(before=st.text(max_size=300), after=st.text(max_size=300))
def test_the_own_key_never_shows(before: str, after: str) -> None:
    text = before.encode(errors="replace") + API_KEY.encode() + after.encode(errors="replace")
    assert API_KEY not in str(invalid(text, list[bytes]))
    assert API_KEY not in str(api_error(text))


def test_a_secret_at_the_edge_of_the_excerpt_is_not_cut_into_view() -> None:
    for padding in range(150, 201):
        body = b"x" * padding + b'{"password":"hunter2"}'
        assert "hunt" not in invalid(body).excerpt


@pytest.mark.parametrize("text", ["://:", '"_', "bearer ", "napi_"])
def test_hiding_takes_time_in_proportion_to_the_text(text: str) -> None:
    # Quadratic, this would run into the time limit of the test.
    told = {"message": text * (2**18 // len(text)) + " x"}
    assert api_error(json.dumps(told).encode()).message


def test_what_is_no_secret_stays() -> None:
    text = '{"id":1,"name":"monkey","keyboard":"azerty","url":"https://h.example.com:8443/x y"}'
    assert invalid(text.encode()).excerpt == text


@pytest.mark.parametrize("limit", [1, 500, 1000, UNSET])
def test_a_page_size_within_bounds_is_taken(limit: int) -> None:
    check_page_size(limit, 1000)


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_a_page_size_out_of_bounds_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match=rf"limit is {limit}: expected 1 to 1000"):
        check_page_size(limit, 1000)


@pytest.mark.parametrize("limit", [True, "10", 10.0, None])
def test_a_page_size_that_is_no_int_is_refused(limit: object) -> None:
    with pytest.raises(TypeError, match="limit is "):
        check_page_size(limit, 1000)  # type: ignore[arg-type]  # callers without a type checker
