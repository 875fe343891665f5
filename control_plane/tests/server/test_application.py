"""Errors, unknown paths, bodies, request ids and the log: section 7 of the specification."""

import asyncio
import logging
import uuid

import pytest

from control_plane.tests.client import Client
from neonctl_local import ServedRequest

JSON = {"Content-Type": "application/json"}


async def test_error_has_the_published_shape(api: Client) -> None:
    reply = await api.send("GET", "/projects/no-such-project-1")
    assert reply.status == 404
    assert reply.headers["Content-Type"].startswith("application/json")
    assert reply.json == {
        "code": "",
        "message": "project 'no-such-project-1' not found",
        "request_id": reply.headers["x-neon-ret-request-id"],
    }


async def test_missing_field_is_reported_in_neons_words(api: Client) -> None:
    for content in (b"{}", b""):
        reply = await api.send("POST", "/projects", content=content, headers=JSON)
        assert (reply.status, reply.message) == (
            400,
            "invalid request: decode application/json: invalid: project (field required)",
        )


@pytest.mark.parametrize("content", [b"{", b"nonsense", b'{"project": }', b"\xff"])
async def test_body_that_is_not_json_is_400(api: Client, content: bytes) -> None:
    await api.expect_error(
        400, "decode application/json", "POST", "/projects", content=content, headers=JSON
    )


@pytest.mark.parametrize("field", ["settings", "unknown"])
async def test_too_deeply_nested_body_is_400(api: Client, field: str) -> None:
    deep = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    content = b'{"project": {"' + field.encode() + b'": ' + deep + b"}}"
    await api.expect_error(
        400, "nested too deep", "POST", "/projects", content=content, headers=JSON
    )


@pytest.mark.parametrize("field", ["region_id", "provisioner"])
async def test_error_names_the_invalid_field(api: Client, field: str) -> None:
    await api.expect_error(400, field, "POST", "/projects", {"project": {field: ""}})


@pytest.mark.parametrize("path", ["/nowhere", "/projects/x/y/z", "/projects/", "//projects"])
async def test_unknown_path_is_404(api: Client, path: str) -> None:
    await api.expect_error(404, "there is no path", "GET", path)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/projects", "GET, POST"),
        ("HEAD", "/projects", "GET, POST"),
        ("POST", "/users/me", "GET"),
        ("PATCH", "/projects/x/operations/y", "GET"),
    ],
)
async def test_wrong_method_is_405_and_lists_the_allowed_methods(
    api: Client, method: str, path: str, allowed: str
) -> None:
    reply = await api.send(method, path)
    assert (reply.status, reply.headers["Allow"]) == (405, allowed)


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
async def test_wrong_content_type_is_415(api: Client, content_type: str) -> None:
    headers = {"Content-Type": content_type}
    await api.expect_error(415, content_type, "POST", "/projects", content=b"{}", headers=headers)


async def test_content_type_may_have_parameters_and_is_ignored_for_get(api: Client) -> None:
    body = b'{"project": {}}'
    headers = {"Content-Type": "application/json; charset=utf-8"}
    assert (await api.send("POST", "/projects", content=body, headers=headers)).status == 201
    headers = {"Content-Type": "text/plain"}
    assert (await api.send("GET", "/projects", headers=headers)).status == 200


async def test_too_large_body_is_413(api: Client) -> None:
    body = b'{"project": {"name": "%s"}}' % (b"x" * (1 << 20))
    await api.expect_error(413, "1048576", "POST", "/projects", content=body, headers=JSON)
    assert (await api.send("GET", "/projects")).json["projects"] == []


@pytest.mark.parametrize("key", ["", None])
async def test_rejected_upload_leaves_no_connection_open(api: Client, key: str | None) -> None:
    for _ in range(3):
        reply = await api.send("POST", "/projects", key=key, content=b"x" * (8 << 20), headers=JSON)
        assert reply.status == (401 if key == "" else 413)
    await api.control_plane.stop()
    names = {str(task.get_coro()) for task in asyncio.all_tasks()}
    assert not [name for name in names if "RequestHandler" in name]


async def test_request_id_is_kept_or_generated(api: Client) -> None:
    named = await api.send("GET", "/nowhere", headers={"X-Request-ID": "mine"})
    assert named.json["request_id"] == named.headers["x-neon-ret-request-id"] == "mine"
    made = await api.send("GET", "/projects")
    assert uuid.UUID(made.headers["x-neon-ret-request-id"])


@pytest.mark.parametrize("named", ["", "x" * 129, "two words", "\u00e4"])
async def test_invalid_request_id_is_replaced(api: Client, named: str) -> None:
    reply = await api.send("GET", "/projects", headers={"X-Request-ID": named})
    assert uuid.UUID(reply.headers["x-neon-ret-request-id"])


async def test_date_of_a_response_is_on_the_clock_of_the_server(api: Client) -> None:
    reply = await api.send("GET", "/projects")
    assert reply.headers["Date"] == "Thu, 01 Jan 2026 00:00:00 GMT"


async def test_path_cannot_add_a_log_line(api: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        await api.send("GET", "/projects%0Afake%0D")
    (line,) = (line for line in caplog.messages if "request_id=" in line)
    assert "/api/v2/projects%0Afake%0D 404" in line
    assert "\n" not in line


async def test_paths_outside_the_api_version_are_404(api: Client) -> None:
    for path in ("/../v1/projects", "/../../projects"):
        assert (await api.send("GET", path)).status == 404


async def test_requests_are_recorded_with_their_statuses(api: Client) -> None:
    await api.get("/projects?limit=5")
    await api.send("GET", "/nowhere", key="")
    assert list(api.control_plane.requests) == [
        ServedRequest("GET", "/projects", 200),
        ("GET", "/nowhere", 401),
    ]
    assert api.control_plane.requests_served == 2


async def test_each_request_is_logged_without_its_key(
    api: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        created = await api.request("POST", "/api_keys", {"key_name": "k"})
        await api.send("GET", "/projects", key="neon_api_key_wrong")
        await api.get("/projects", key=created["key"])
    lines = [line for line in caplog.messages if "request_id=" in line]
    assert [line.split()[:3] for line in lines] == [
        ["POST", "/api/v2/api_keys", "200"],
        ["GET", "/api/v2/projects", "401"],
        ["GET", "/api/v2/projects", "200"],
    ]
    assert f"key={created['id']} " in lines[2]
    for secret in (api.key, created["key"], "neon_api_key_wrong"):
        assert secret not in caplog.text


async def test_unexpected_error_is_a_logged_500_in_the_published_shape(
    api: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a defect")

    with monkeypatch.context() as patch:
        patch.setattr("neonctl_local.api.projects.list_record", broken)
        reply = await api.send("POST", "/projects", {"project": {}})
    assert (reply.status, reply.message) == (500, "internal server error")
    assert "a defect" in caplog.text
    assert (await api.get("/projects"))["projects"] == []
