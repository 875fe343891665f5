"""Keys, expectations and bodies that no HTTP library sends, over raw sockets."""

import gzip
import logging
from urllib.parse import unquote

import pytest
from aiohttp.compression_utils import ZLibDecompressor
from yarl import URL

from control_plane.tests.client import Client, Http
from control_plane.tests.raw import connected, head, host_of, reply_to
from tests.support.until import until


async def status_of(api: Client, *lines: bytes) -> int:
    """Send a request with these lines and return the status of its response."""
    async with connected(api) as (reader, writer):
        writer.write(b"\r\n".join((*lines, host_of(api), b"", b"")))
        return int((await reader.readline()).split()[1])


async def test_key_that_is_not_text_is_401(api: Client) -> None:
    lines = (b"GET /api/v2/projects HTTP/1.1", b"Authorization: Bearer \xff\xfe")
    assert await status_of(api, *lines) == 401


async def test_key_is_checked_before_the_expect_header(api: Client) -> None:
    assert await status_of(api, b"GET /api/v2/projects HTTP/1.1", b"Expect: a miracle") == 401


@pytest.mark.parametrize(
    "line", [b"GET /nowhere HTTP/1.1", b"OPTIONS * HTTP/1.1", b"PUT / HTTP/1.1"]
)
@pytest.mark.parametrize("expected", [b"a miracle", b"\xff", b""])
async def test_expect_header_does_not_change_the_response_to_an_unknown_path(
    api: Client, line: bytes, expected: bytes
) -> None:
    reply = await reply_to(api, head(api, line, b"Expect: " + expected))
    assert (reply.status, set(reply.json)) == (404, {"code", "message", "request_id"})


async def test_client_with_expect_header_gets_100_continue(api: Client) -> None:
    key = f"Authorization: Bearer {api.key}".encode()
    lines = (b"POST /api/v2/api_keys HTTP/1.1", key, b"Expect: 100-continue", b"Content-Length: 2")
    assert await status_of(api, *lines) == 100


async def test_key_revoked_while_the_body_arrives_is_401(api: Client) -> None:
    created = await api.request("POST", "/api_keys", {"key_name": "slow"})
    body = b'{"project": {"name": "too-late"}}'
    async with connected(api) as (reader, writer):
        writer.write(
            b"POST /api/v2/projects HTTP/1.1\r\nContent-Type: application/json\r\n"
            + host_of(api)
            + b"\r\n"
            + b"Expect: 100-continue\r\n"
            + f"Authorization: Bearer {created['key']}\r\n".encode()
            + f"Content-Length: {len(body)}\r\n\r\n".encode()
        )
        assert (await reader.readline()).split()[1] == b"100"  # it was let in
        await reader.readline()
        await api.request("DELETE", f"/api_keys/{created['id']}")
        writer.write(body)
        assert (await reader.readline()).split()[1] == b"401"
    assert (await api.get("/projects"))["projects"] == []


def forms(token: str) -> list[str]:
    """Return the token as it may appear in a path: in other cases, and percent-encoded."""
    encoded = "".join(f"%{ord(character):02x}" for character in token)
    return [
        *(token, token.upper(), token.replace("_", "%5F"), encoded, encoded.upper()),
        *(encoded.replace("%", "%25"), f"{token[:20]}%{ord(token[20]):X}{token[21:]}"),
    ]


async def test_misplaced_key_is_not_logged(api: Client, caplog: pytest.LogCaptureFixture) -> None:
    secret = api.key.rpartition("_")[2]
    with caplog.at_level(logging.DEBUG):
        for form in forms(api.key):
            await api.send("DELETE", f"/api_keys/{form}")
            await api.send("GET", f"/projects?search={form}")
            await api.send("GET", "/projects", headers={"X-Request-ID": form})
        for line in (b"Authorization : Bearer %b", b"X: \0%b", b"%b"):
            await reply_to(api, head(api, b"GET / HTTP/1.1", line % api.key.encode()))
    assert caplog.messages
    seen = [*caplog.messages, *(request.path for request in api.control_plane.requests)]
    for text in seen:
        assert secret[:8] not in unquote(unquote(text)).lower()


async def test_message_of_an_error_masks_a_misplaced_key(api: Client) -> None:
    reply = await api.send("GET", f"/nowhere/{api.key}")
    assert reply.status == 404
    assert "nowhere/neon_api_key_****" in reply.message


async def test_name_of_a_field_is_not_masked(api: Client, branch_path: str) -> None:
    body = {"settings": {"openapi_mode": 1}}
    path = f"{branch_path}/data-api/neondb"
    await api.expect_error(400, "settings.openapi_mode (", "POST", path, body)


@pytest.mark.parametrize("prefix", ["nsk_live_", "nt_live_0123456789ab_"])
async def test_misplaced_secret_of_a_credential_is_masked(
    api: Client, caplog: pytest.LogCaptureFixture, branch_path: str, prefix: str
) -> None:
    secret = "s3-_" * 8
    with caplog.at_level(logging.DEBUG):
        for form in forms(prefix + secret):
            reply = await api.send("DELETE", f"{branch_path}/credentials/{form}")
            assert "****" in reply.message
    seen = [*caplog.messages, *(request.path for request in api.control_plane.requests)]
    for text in seen:
        assert secret[:8] not in unquote(unquote(text)).lower()


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "identity, gzip"])
async def test_compressed_body_is_refused_and_never_decoded(
    api: Client, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    decoded: list[int] = []
    decode = ZLibDecompressor.decompress_sync

    def count(decompressor: ZLibDecompressor, data: bytes, max_length: int = 0) -> bytes:
        decoded.append(len(result := decode(decompressor, data, max_length)))
        return result

    monkeypatch.setattr(ZLibDecompressor, "decompress_sync", count)
    bomb = gzip.compress(bytes(1 << 24)) * 4
    origin = str(URL(api.base_url).origin())
    async with Http(origin, "") as stranger, Http(origin, api.key) as owner:
        for sender, path, status in (
            (owner, "/api/v2/projects", 415),
            (stranger, "/api/v2/projects", 401),
            (stranger, "/api/v2/unknown", 401),
            (stranger, "/console/sign-in", 415),
            (stranger, "/sql", 501),
        ):
            kind = "application/x-www-form-urlencoded" if "console" in path else "application/json"
            headers = {"Content-Encoding": encoding, "Content-Type": kind}
            reply = await sender.send("POST", path, content=bomb, headers=headers)
            assert reply.status == status, path
    assert sum(decoded) == 0


async def test_body_with_the_encoding_identity_is_accepted(api: Client) -> None:
    headers = {"Content-Encoding": "identity", "Content-Type": "application/json"}
    content = b'{"project": {}}'
    reply = await api.send("POST", "/projects", content=content, headers=headers)
    assert reply.status == 201


async def test_client_that_disconnects_early_causes_no_error(
    api: Client, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(api) as (_, writer):
        writer.write(
            b"POST /api/v2/projects HTTP/1.1\r\nContent-Type: application/json\r\n"
            + host_of(api)
            + b"\r\n"
            + f"Authorization: Bearer {api.key}\r\nContent-Length: 99\r\n\r\nhalf".encode()
        )
        await writer.drain()
    await until(lambda: api.control_plane.requests_served > 0)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
