"""Encoding of requests."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET

from neonctl_async import OperationStatus, Secret, __version__
from neonctl_async.transport.encoding import QueryValue
from neonctl_async.transport.protocol import DEFAULT_HEADERS, raw_request, request
from neonctl_async.types import OperationsResponse
from tests.transport.wire import BASE_URL, WIRE

TEMPLATE = "/projects/{project_id}/operations"


HOSTILE = st.text(st.sampled_from("./\\%2eEfF?#;:@&=+ \x00\r\n\u202e\ud800é\uff0eab"), max_size=8)


def url_of(id: str | int) -> str:
    return WIRE.url(request("GET", TEMPLATE, OperationsResponse, id))


def query_of(query: Mapping[str, QueryValue]) -> list[tuple[str, str]]:
    url = WIRE.url(request("GET", "/projects", OperationsResponse, query=query))
    return parse_qsl(urlsplit(url).query, keep_blank_values=True, strict_parsing=bool(query))


@given(id=st.one_of(st.text(), HOSTILE))
@example(id="%2e%2e")
@example(id="a%2Fb")
@example(id="\\..")
@example(id="..;")
def test_id_stays_within_its_path_segment_or_is_refused(id: str) -> None:
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
def test_id_that_is_empty_or_would_change_the_path_is_refused(id: str) -> None:
    with pytest.raises(ValueError, match=r"^project_id is .* which would change the path$"):
        url_of(id)


@pytest.mark.parametrize("id", ["\ud800", "a\udfffb"])
def test_id_with_invalid_unicode_is_refused_by_name(id: str) -> None:
    with pytest.raises(ValueError, match="project_id"):
        url_of(id)


@pytest.mark.parametrize("id", [True, False, None, 1.5, b"p-1", ["p-1"]])
def test_id_that_is_not_a_string_is_refused_by_name(id: Any) -> None:
    with pytest.raises(TypeError, match=r"project_id is .*: expected a string"):
        url_of(id)


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
def test_id_is_percent_encoded(id: str | int, segment: str) -> None:
    assert url_of(id) == f"{BASE_URL}/projects/{segment}/operations"


@pytest.mark.parametrize("id", ["x" * 256, "é" * 256])
def test_longest_id_is_sent(id: str) -> None:
    assert unquote(url_of(id)).endswith(f"/projects/{id}/operations")


@pytest.mark.parametrize("id", ["x" * 257, "x" * 20_000, "é" * 20_000])
def test_longer_id_is_refused_with_a_shortened_value(id: str) -> None:
    with pytest.raises(ValueError, match=f"project_id is .*, with {len(id)} characters") as caught:
        url_of(id)
    assert len(str(caught.value)) < 300


def test_very_long_values_are_shortened_in_errors() -> None:
    long = "x/" * 10_000
    wrong_type: Any = {long: 1}
    with pytest.raises(ValueError, match="project_id") as by_id:
        url_of(long)
    with pytest.raises(ValueError, match="path is") as by_path:
        raw_request("GET", f"/{long}", OperationsResponse)
    with pytest.raises(ValueError, match="method is") as by_method:
        raw_request(long, "/projects", OperationsResponse)
    with pytest.raises(TypeError, match="q is") as by_query:
        query_of({"q": wrong_type})
    for caught in (by_id, by_path, by_method, by_query):
        assert len(str(caught.value)) < 400


def test_route_contains_no_id() -> None:
    call = request("GET", TEMPLATE, OperationsResponse, "p-1")
    assert call.route == "GET " + TEMPLATE.replace("{project_id}", "{id}")
    assert call.__rich_repr__() == [("route", call.route)]


@given(
    query=st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8"))
    )
)
def test_query_decodes_to_its_original_values(query: dict[str, str]) -> None:
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
def test_query_values_are_encoded_by_type(value: QueryValue, sent: list[str]) -> None:
    assert query_of({"x": value}) == [("x", text) for text in sent]


def test_empty_query_adds_no_question_mark() -> None:
    assert (
        WIRE.url(request("GET", "/projects", OperationsResponse, query={"a": UNSET}))
        == f"{BASE_URL}/projects"
    )


def test_cursor_is_percent_encoded() -> None:
    url = WIRE.url(request("GET", "/projects", OperationsResponse, query={"cursor": "a+b/c= &d"}))
    assert url.endswith("?cursor=a%2Bb%2Fc%3D%20%26d")


class ZoneWithoutOffset(tzinfo):
    """A time zone without a UTC offset."""

    def utcoffset(self, _moment: datetime | None) -> None:
        return None

    dst = tzname = utcoffset


@pytest.mark.parametrize("zone", [None, ZoneWithoutOffset()])
def test_datetime_without_offset_is_refused_by_name(zone: tzinfo | None) -> None:
    with pytest.raises(ValueError, match=r"since is 2026-01-01T00:00:00: .*time zone"):
        query_of({"since": datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=zone)})


@pytest.mark.parametrize("value", [None, b"ab", date(2026, 1, 1), object(), [None]])
def test_query_value_of_an_unsupported_type_is_refused_by_name(value: Any) -> None:
    with pytest.raises(TypeError, match="since"):
        query_of({"since": value})


def test_query_value_with_invalid_unicode_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="search"):
        query_of({"search": "\ud800"})


def test_query_name_with_invalid_unicode_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a name in query is '\\ud800': it cannot"):
        request("GET", "/projects", OperationsResponse, query={"\ud800": "x"})


@pytest.mark.parametrize(
    "moment",
    [
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
        datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-1))),
    ],
)
def test_datetime_outside_the_years_of_utc_is_refused_by_name(moment: datetime) -> None:
    with pytest.raises(ValueError, match=r"since is .*UTC"):
        query_of({"since": moment})


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/regions", "GET /regions"),
        ("/projects/p-1/branches/br-2", "GET /projects/{id}/branches/{id}"),
        ("/users/me", "GET /users/me"),
        ("/a%20b/c@d", "GET /{id}/c@d"),
        ("/%C3%BC", "GET /{id}"),
    ],
)
def test_raw_request_url_starts_with_the_base_url(path: str, route: str) -> None:
    call = raw_request("get", path, OperationsResponse, query={"limit": 5})
    assert WIRE.url(call) == f"{BASE_URL}{path}?limit=5"
    assert (call.method, call.route) == ("GET", route)


@pytest.mark.parametrize(
    ("path", "project_id"),
    [
        ("/projects/p-1", "p-1"),
        ("/projects/p%2D1/branches", "p-1"),
        ("/projects", None),
        ("/projects/auth/keys", None),
        ("/regions/p-1", None),
    ],
)
def test_project_id_is_decoded_from_the_path(path: str, project_id: str | None) -> None:
    assert raw_request("POST", path, OperationsResponse).project_id == project_id


@pytest.mark.parametrize(
    "path",
    [
        *("//evil.example.com/x", "https://evil.example.com/x", "@evil.example.com"),
        *("", "/", "projects", "/projects/", "/projects//x"),
        *("/..", "/../x", "/a/../b", "/a/./b", "/a/%2e%2e/b", "/a/.%2E/b"),
        *("/a/..%2Fb", "/a/b%2f..", "/a/b%2F.%2fc"),
        *("/a%5cb", "/a\\b", "/a?b=1", "/a#b", "/a b", "/a\n", "/a\r\nHost: evil"),
        *("/é", "/%", "/%4", "/%zz", "/\ud800"),
    ],
)
def test_raw_path_that_could_leave_the_base_url_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"^path is "):
        raw_request("GET", path, OperationsResponse)


def test_raw_path_may_have_an_encoded_slash() -> None:
    path = "/projects/p-1/branches/br-1/roles/team%2fapp"
    assert WIRE.url(raw_request("DELETE", path, OperationsResponse)) == f"{BASE_URL}{path}"


def test_raw_path_with_a_query_is_refused_with_a_hint() -> None:
    with pytest.raises(ValueError, match=r"characters, without a .*; pass the query as query=$"):
        raw_request("GET", "/projects?limit=5", OperationsResponse)


@given(path=st.lists(HOSTILE).map(lambda parts: "/" + "/".join(parts)))
def test_accepted_raw_path_stays_below_the_base_url(path: str) -> None:
    try:
        url = WIRE.url(raw_request("GET", path, OperationsResponse))
    except ValueError:
        return
    assert url == f"{BASE_URL}{path}"
    assert "" not in urlsplit(url).path.split("/")[1:]
    decoded = unquote(urlsplit(url).path)
    assert "\\" not in decoded
    assert not {".", ".."} & set(decoded.split("/"))
    assert not urlsplit(url).query
    assert not urlsplit(url).fragment


@pytest.mark.parametrize("method", ["", "GET ", "GE T", "GET\r\nX: y", "GÉT", "GET\n"])
def test_invalid_method_is_refused(method: str) -> None:
    with pytest.raises(ValueError, match=r"^method is "):
        raw_request(method, "/projects", OperationsResponse)


@pytest.mark.parametrize("ids", [(), ("p-1", "op-1")])
def test_wrong_number_of_ids_is_refused(ids: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="zip"):
        request("GET", TEMPLATE, OperationsResponse, *ids)


def test_headers_contain_no_key() -> None:
    headers = WIRE.headers(request("GET", "/projects", OperationsResponse), "req-1")
    assert DEFAULT_HEADERS | headers == {
        "Accept": "application/json",
        "Accept-Encoding": "gzip",
        "User-Agent": f"neonctl-async/{__version__}",
        "X-Request-ID": "req-1",
    }


@pytest.mark.parametrize(
    ("body", "sent"),
    [({"a": [1, None]}, b'{"a":[1,null]}'), (None, b"null"), ({}, b"{}"), ([], b"[]")],
)
def test_body_is_json_with_its_content_type(body: object, sent: bytes) -> None:
    call = raw_request("POST", "/projects", OperationsResponse, body=body)
    assert call.body == sent
    assert WIRE.headers(call, "req-1")["Content-Type"] == "application/json"


def test_request_without_a_body_sends_no_body() -> None:
    assert raw_request("POST", "/projects", OperationsResponse).body is None


def test_secret_in_a_body_is_refused_with_a_hint() -> None:
    with pytest.raises(TypeError, match=r"a Secret .*: pass secret\.reveal\(\)") as caught:
        raw_request("POST", "/projects", OperationsResponse, body={"password": Secret("hunter2")})
    assert "hunter2" not in str(caught.value)


def test_call_that_was_not_awaited_is_refused_in_a_body_with_a_hint() -> None:
    call = asyncio.sleep(0)
    with pytest.raises(TypeError, match=r"a coroutine .*: await the call, and pass its result$"):
        raw_request("POST", "/projects", OperationsResponse, body={"name": call})
    call.close()


def test_body_with_a_type_unknown_to_json_is_refused_by_type() -> None:
    with pytest.raises(TypeError, match=r"a complex in a body cannot be written as JSON$"):
        raw_request("POST", "/projects", OperationsResponse, body=[1j])
