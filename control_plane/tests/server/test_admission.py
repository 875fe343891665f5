"""Requests that address another server, come from web pages, or have an ambiguous framing."""

import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict
from yarl import URL

from control_plane.tests.client import Client, serve
from control_plane.tests.raw import head, reply_to
from neonctl_local.errors import ApiError
from neonctl_local.server.admission import check_admission
from neonctl_local.server.names import ServerNames

GET = b"GET /api/v2/projects HTTP/1.1"
POST = b"POST /api/v2/projects HTTP/1.1"
JSON = b"Content-Type: application/json"
BODY = b'{"project": {}}'


def request(api: Client, *lines: bytes, body: bytes = b"") -> bytes:
    """Return a request with the key, and with no Host header of its own."""
    key = f"Authorization: Bearer {api.key}".encode()
    length = [b"Content-Length: %d" % len(body)] if body else []
    return b"\r\n".join((*lines, key, *length, b"", body))


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *(("127.0.0.1:PORT", 200), ("localhost:PORT", 200), ("LOCALHOST.:PORT", 200)),
        *(("[::1]:PORT", 200), ("127.0.0.1", 421), ("127.0.0.1:1", 421), ("localhost", 421)),
        *(("evil.example", 421), ("evil.example:PORT", 421), ("127.0.0.1.evil.example:PORT", 421)),
        *(("0.0.0.0:PORT", 421), ("192.168.0.1:PORT", 421), ("2130706433:PORT", 421)),
        *(("", 400), ("[::1", 400), ("a b", 400), ("user@127.0.0.1:PORT", 400), (":PORT", 400)),
        *(("127.0.0.1:PORT, evil.example", 400), ("\u00e4.example", 400), (".:PORT", 400)),
    ],
)
async def test_host_must_be_a_loopback_name_with_the_port(
    api: Client, host: str, status: int
) -> None:
    line = f"Host: {host}".replace("PORT", str(URL(api.base_url).port)).encode()
    reply = await reply_to(api, request(api, GET, line))
    assert reply.status == status
    if status == 421:
        assert "is not a name of this server: expected 127.0.0.1:" in reply.message


async def test_host_is_checked_before_the_key(api: Client) -> None:
    reply = await reply_to(api, GET + b"\r\nHost: evil.example\r\n\r\n")
    assert reply.status == 421


async def test_missing_or_second_host_is_400(api: Client) -> None:
    host = f"Host: {URL(api.base_url).authority}".encode()
    assert (await reply_to(api, request(api, GET))).status == 400
    assert (await reply_to(api, request(api, GET, host, host))).status == 400
    assert (await reply_to(api, request(api, GET, host, b"host: evil.example"))).status == 400


def test_second_host_is_refused_whatever_the_parser_accepts() -> None:
    """The oldest accepted aiohttp passes it on, and the newest one refuses it itself."""
    hosts = CIMultiDict([("Host", "127.0.0.1"), ("host", "127.0.0.1")])
    names = ServerNames("127.0.0.1", exposed=False, allowed=frozenset({("127.0.0.1", None)}))
    with pytest.raises(ApiError, match="the request has 2 Host headers: send one") as refused:
        check_admission(make_mocked_request("GET", "/", hosts), names, frozenset())
    assert refused.value.status == 400


async def test_http_1_0_needs_no_host(api: Client) -> None:
    line = b"GET /api/v2/projects HTTP/1.0"
    assert (await reply_to(api, request(api, line))).status == 200
    assert (await reply_to(api, request(api, line, b"Host: evil.example"))).status == 421


async def test_absolute_target_must_name_the_server(api: Client) -> None:
    own = api.base_url.encode()
    for scheme, status in ((b"http://evil.example/api/v2", 421), (own, 200)):
        line = b"GET " + scheme + b"/projects HTTP/1.1"
        assert (await reply_to(api, head(api, line))).status == status
    line = b"GET " + own + b"/projects HTTP/1.1"
    assert (await reply_to(api, request(api, line, b"Host: evil.example"))).status == 421


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        *(("http://HOST", 201), ("HTTP://HOST", 201), ("https://HOST", 201)),
        *(("http://evil.example", 403), ("null", 403), ("", 403), ("http://127.0.0.1", 403)),
        *(("http://localhost:3000", 403), ("http://HOST.evil.example", 403), ("HOST", 403)),
        *(("file://HOST", 403), ("http://HOST http://evil.example", 403)),
    ],
)
async def test_other_pages_change_nothing(api: Client, origin: str, status: int) -> None:
    authority = URL(api.base_url).authority
    line = f"Origin: {origin.replace('HOST', authority)}".encode()
    host = f"Host: {authority}".encode()
    reply = await reply_to(api, request(api, POST, host, JSON, line, body=BODY))
    assert reply.status == status
    count = len((await api.get("/projects"))["projects"])
    assert count == (status == 201)
    assert (await reply_to(api, request(api, GET, host, line))).status == 200


async def test_preflight_of_a_page_is_refused(api: Client) -> None:
    line = b"OPTIONS /api/v2/projects HTTP/1.1"
    origin = b"Origin: http://evil.example"
    reply = await reply_to(api, head(api, line, origin, key=False))
    assert (reply.status, "Access-Control-Allow-Origin" in reply.headers) == (403, False)


async def test_second_origin_is_refused(api: Client) -> None:
    own = f"Origin: {URL(api.base_url).origin()}".encode()
    reply = await reply_to(api, head(api, POST, own, b"Origin: http://evil.example", JSON))
    assert reply.status == 403


async def test_two_authorization_headers_are_401(api: Client) -> None:
    key = f"Authorization: Bearer {api.key}".encode()
    for other in (key, b"Authorization: Bearer x", b"authorization:"):
        reply = await reply_to(api, head(api, GET, other))
        assert (reply.status, "2 Authorization headers" in reply.message) == (401, True)


async def test_exposed_server_has_its_public_name_and_addresses_with_any_port() -> None:
    async with serve(host="0.0.0.0", expose="plane", allowed_hosts=["proxy", "b:81"]) as exposed:
        api = Client(exposed.control_plane)
        api.base_url = exposed.base_url.replace("plane", "127.0.0.1")
        for host, status in (
            *((b"plane:8080", 200), (b"PLANE", 200), (b"localhost:9000", 200)),
            *((b"192.168.0.1:1", 200), (b"[fe80::1]", 200), (b"proxy", 200), (b"proxy:1", 200)),
            *((b"b:81", 200), (b"b:82", 421), (b"b", 421), (b"plane.evil.example", 421)),
        ):
            assert (await reply_to(api, request(api, GET, b"Host: " + host))).status == status, host
        await api.close()


@pytest.mark.control_plane(allowed_hosts=["neon.test"])
async def test_allowed_host_is_another_name_of_the_server(api: Client) -> None:
    origin = b"Origin: https://neon.test"
    lines = (POST, b"Host: neon.test", JSON, origin)
    assert (await reply_to(api, request(api, *lines, body=BODY))).status == 201


@pytest.mark.parametrize(
    "lines",
    [
        (b"Content-Length: 5", b"Transfer-Encoding: chunked"),
        (b"Transfer-Encoding: chunked", b"Content-Length: 5"),
        (b"Content-Length: 5", b"Content-Length: 6"),
        (b"Content-Length: 5", b"Content-Length: 5"),
        (b"Content-Length: 5, 5",),
        (b"Content-Length: +5",),
        (b"Content-Length: 5_0",),
        (b"Content-Length: -1",),
        (b"Content-Length : 5",),
        (b"Transfer-Encoding: gzip, chunked",),
        (b"Transfer-Encoding: chunked, identity",),
        (b"Transfer-Encoding: xchunked",),
        (b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"),
        (b"Transfer-Encoding\x0b: chunked",),
        (b"X: a\r\n b",),
    ],
)
async def test_ambiguous_length_is_400_and_closes_or_reads_no_second_request(
    api: Client, lines: tuple[bytes, ...]
) -> None:
    second = b"DELETE /api/v2/api_keys/1 HTTP/1.1\r\n\r\n"
    reply = await reply_to(api, head(api, POST, JSON, *lines) + b"0\r\n\r\n" + second)
    assert (reply.status, reply.headers["Content-Type"]) == (400, "application/json")
    assert (await api.get("/api_keys"))[0]["id"] == 1


async def test_transfer_encoding_of_http_1_0_is_400(api: Client) -> None:
    line = b"POST /api/v2/projects HTTP/1.0"
    reply = await reply_to(api, head(api, line, b"Transfer-Encoding: chunked") + b"0\r\n\r\n")
    assert (reply.status, "HTTP/1.0 has no Transfer-Encoding" in reply.message) == (400, True)


@pytest.mark.parametrize("version", [b"", b" HTTP/1.2", b" HTTP/2.0", b" HTTP/0.9", b" HTTPS/1.1"])
async def test_other_versions_of_http_are_400(api: Client, version: bytes) -> None:
    reply = await reply_to(api, head(api, b"GET /api/v2/projects" + version))
    assert reply.status == 400
    assert set(reply.json) == {"code", "message", "request_id"}


async def test_methods_without_a_meaning_here_are_refused(api: Client) -> None:
    for line, status in (
        (b"CONNECT evil.example:443 HTTP/1.1", 400),
        (b"TRACE /api/v2/projects HTTP/1.1", 405),
        (b"OPTIONS /api/v2/projects HTTP/1.1", 405),
        (b"OPTIONS * HTTP/1.1", 404),
    ):
        reply = await reply_to(api, head(api, line))
        assert reply.status == status
        assert set(reply.json) == {"code", "message", "request_id"}
