"""Responses to requests that are not valid HTTP, and to errors outside the routes."""

import logging

import pytest

from control_plane.tests.client import Client
from control_plane.tests.raw import connected, head, read_reply, reply_to
from neonctl_local.server.tenants.state import TenantState

GET = b"GET /api/v2/projects HTTP/1.1"


@pytest.mark.parametrize(
    ("request_lines", "said"),
    [
        (b"hello", "invalid HTTP: "),
        (b"\x00\xff\xfe", "invalid HTTP: "),
        (b"GET /api/v2/\xff HTTP/1.1", "invalid HTTP: "),
        (b"GET /" + b"x" * 9000 + b" HTTP/1.1", "longer than 8190 bytes"),
        (GET + b"\r\nX: " + b"x" * 9000, "longer than 8190 bytes"),
        (GET + b"\r\nX: 1" * 200, "invalid HTTP: Too many headers"),
        (GET + b"\r\nX: a\x00b", "invalid HTTP: "),
        (b"PRI * HTTP/2.0", "not HTTP/2"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "use http://"),
    ],
)
async def test_request_that_is_not_http_is_400_in_the_shape_of_the_api(
    api: Client, request_lines: bytes, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with connected(api) as (reader, writer):
        writer.write(head(api, request_lines))
        reply = await read_reply(reader)
        assert await reader.read() == b""
    assert reply.status == 400
    assert reply.headers["Content-Type"] == "application/json"
    assert reply.headers["Date"] == "Thu, 01 Jan 2026 00:00:00 GMT"
    assert said in reply.message
    (line,) = (line for line in caplog.messages if "request_id=" in line)
    assert line == f"- - 400 {reply.message} request_id={reply.json['request_id']}"
    assert api.key not in caplog.text + reply.message
    assert all(record.levelno < logging.WARNING for record in caplog.records)


async def test_defect_outside_the_routes_is_500_in_the_shape_of_the_api(
    api: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a defect")

    with monkeypatch.context() as patch:
        patch.setattr(TenantState, "note", broken)
        reply = await reply_to(api, head(api, GET))
    assert (reply.status, reply.message) == (500, "internal server error")
    assert "a defect" in caplog.text
