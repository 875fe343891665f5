"""Requests are compared with the published description before they are handled."""

import asyncio
import json
import re
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
from msgspec import UnsetType

from control_plane.tests.api.description.broken import Broken, broken, drawn, valid
from control_plane.tests.client import Client, serve
from neonctl_local import ManualClock
from neonctl_local.api.description.checks import UNPUBLISHED, check_request
from neonctl_local.api.description.published import Schema, description
from neonctl_local.errors import ApiError
from neonctl_local.server.routes import ROUTE_NAMES

JSON = {"Content-Type": "application/json"}

BODIES: Mapping[str, Schema] = {
    name: endpoint.body
    for name, endpoint in description().endpoints.items()
    if name in ROUTE_NAMES and not isinstance(endpoint.body, UnsetType)
}
"""The schemas of the bodies of the served endpoints."""


def refused(route: str, query: Mapping[str, str], content: bytes = b"") -> str:
    """Check a request that is invalid. Return the message."""
    with pytest.raises(ApiError) as caught:
        check_request(route, query.items(), content)
        pytest.fail(f"{route} accepts {dict(query)} and {content!r}")
    assert caught.value.status == 400
    return caught.value.message


def names_field(message: str, field: str) -> bool:
    """Return whether the message of an error for a body names the field."""
    return f"application/json: invalid: {field} (" in message


def test_error_for_a_body_with_one_invalid_field_names_the_field() -> None:
    for route, schema in BODIES.items():
        cases = [case for seed in range(5) for case in broken(schema, Random(seed))]
        assert len(cases) >= 15
        for field, body in cases:
            message = refused(route, {}, json.dumps(body).encode())
            assert names_field(message, field), (route, field, body, message)
            assert "regex" not in message


def test_body_that_matches_the_schema_is_accepted() -> None:
    for route, schema in BODIES.items():
        for seed in range(20):
            body = drawn(schema, Random(seed))
            check_request(route, [], json.dumps(body | {"unknown": [None]}).encode())


async def test_unknown_query_parameter_is_ignored(api: Client, branch_path: str) -> None:
    for path in (branch_path, f"{branch_path}/roles", f"{branch_path}/databases"):
        assert await api.get(f"{path}?limit=100&page=1&page=2") == await api.get(path)


def test_body_of_an_endpoint_that_takes_none_is_refused() -> None:
    for route in ROUTE_NAMES - BODIES.keys():
        published = UNPUBLISHED.get(route, route)
        assert published in description().endpoints, f"{published} is served: run make endpoints"
        parameters = description().endpoints[published].query
        query = {name: text_of(part.schema) for name, part in parameters.items() if part.required}
        assert "takes no body" in refused(route, query, b"{}"), route


def text_of(schema: Schema) -> str:
    """Return a query parameter that matches a schema."""
    kind = description().schemas[schema.ref].type if schema.ref else schema.type
    return ",".join(valid(schema)) if kind == "array" else str(valid(schema))


@pytest.mark.parametrize(
    ("route", "query", "words"),
    [
        ("GET /projects", {"timeout": "30001"}, "timeout: '30001' is invalid: expected `int` <="),
        ("GET /projects", {"timeout": "99"}, "timeout: '99'"),
        ("GET /projects", {"limit": "1.0"}, "limit: '1.0' is invalid: expected `int`"),
        ("GET /projects", {"limit": "+1"}, "limit: '+1'"),
        ("GET /projects", {"limit": "9" * 21}, "limit: "),
        ("GET /projects", {"limit": ""}, "limit: ''"),
        ("GET /projects", {"org_id": ""}, "org_id: '' is invalid: expected an id"),
        ("GET /projects", {"org_id": "org-x\n"}, "org_id: "),
        ("GET /projects", {"recoverable": "1"}, "recoverable: '1' is invalid: expected `bool`"),
        ("GET /projects/{project_id}/connection_uri", {}, "database_name: query parameter req"),
        ("GET /projects/{project_id}/connection_uri", {"branch_id": ""}, "branch_id: ''"),
        (
            "GET /projects/{project_id}/branches",
            {"sort_order": "up"},
            "sort_order: 'up' is invalid: expected one of asc, desc",
        ),
        ("GET /consumption_history/projects", {"from": "yesterday"}, "from: 'yesterday'"),
        ("GET /consumption_history/projects", {"project_ids": "A"}, "project_ids: 'A' is invalid"),
    ],
)
def test_error_for_an_invalid_query_parameter_names_it(
    route: str, query: dict[str, str], words: str
) -> None:
    assert f"invalid request: {words}" in refused(route, query)


def test_required_body_is_sent_even_if_no_field_is_required() -> None:
    route = "POST /projects/{project_id}/branch_anonymized"
    assert "invalid request: body: send a JSON body" in refused(route, {})
    check_request(route, [], b"{}")


@pytest.mark.parametrize("query", ["lsn=", "timestamp=", "name=", "name=a%0A", "expires_at="])
async def test_empty_parameter_of_a_snapshot_is_not_taken_for_a_missing_one(
    api: Client, branch_path: str, query: str
) -> None:
    name = query.partition("=")[0]
    await api.expect_error(
        400, f"invalid request: {name}: ", "POST", f"{branch_path}/snapshot?{query}"
    )


def test_query_parameter_that_is_sent_twice_is_refused_unless_it_is_a_list() -> None:
    with pytest.raises(ApiError, match="limit: given 2 times: send it once"):
        check_request("GET /projects", [("limit", "1"), ("limit", "2")], b"")
    required = [("from", "2026-01-01T00:00:00Z"), ("to", "2026-01-02T00:00:00Z")]
    ids = [("project_ids", "a,b"), ("project_ids", "c"), ("granularity", "daily")]
    check_request("GET /consumption_history/projects", [*required, *ids], b"")


@pytest.mark.parametrize("flag", ["true", "False"])
def test_spellings_of_booleans_of_neon_api_are_accepted(flag: str) -> None:
    check_request("GET /projects", [("recoverable", flag)], b"")


def test_route_that_is_not_published_is_not_checked() -> None:
    check_request("GET /local/v1/x", [("x", "y")], b"x")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"org_id": ""}, "project.org_id"),
        ({"org_id": None}, "project.org_id"),
        ({"name": None}, "project.name"),
        ({"name": " \t"}, "project.name"),
        ({"name": "a\nb"}, "project.name"),
        ({"name": "a\0b"}, "project.name"),
        ({"settings": {"quota": 5}}, "project.settings.quota"),
        ({"settings": {"quota": {"active_time_seconds": "x"}}}, "quota.active_time_seconds"),
        ({"settings": {"allowed_ips": ["::1"]}}, "project.settings.allowed_ips"),
        (
            {"settings": {"maintenance_window": {"weekdays": [1], "end_time": "05:00"}}},
            "maintenance_window.start_time",
        ),
        ({"settings": {"preload_libraries": {"enabled_libraries": "x"}}}, "enabled_libraries"),
        ({"settings": {"audit_log_level": "all"}}, "project.settings.audit_log_level"),
        ({"settings": {"hipaa": "no"}}, "project.settings.hipaa"),
        ({"branch": {"annotations": {str(n): "x" for n in range(51)}}}, "project.branch.annot"),
        ({"branch": {"database_name": "a\r"}}, "project.branch.database_name"),
        ({"branch": {"role_name": "\u2028"}}, "project.branch.role_name"),
    ],
)
async def test_invalid_project_is_refused(api: Client, body: object, field: str) -> None:
    await api.expect_error(400, field, "POST", "/projects", {"project": body})
    assert await api.project_names() == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"pooler_mode": "AAA"}, "endpoint.pooler_mode (expected one of transaction)"),
        ({"branch_id": ""}, "endpoint.branch_id"),
        ({"settings": {"pg_settings": {"work_mem": 4}}}, "endpoint.settings.pg_settings"),
        ({"settings": {"pgbouncer_settings": []}}, "endpoint.settings.pgbouncer_settings"),
        ({"name": "\x7f"}, "endpoint.name"),
    ],
)
async def test_invalid_change_of_a_compute_is_refused(
    api: Client, branch_path: str, body: object, field: str
) -> None:
    [before] = (await api.get(f"{branch_path}/endpoints"))["endpoints"]
    path = f"/projects/{before['project_id']}/endpoints/{before['id']}"
    await api.expect_error(400, field, "PATCH", path, {"endpoint": body})
    assert await api.get(path) == {"endpoint": before}


async def test_unknown_settings_are_not_stored(api: Client, branch_path: str) -> None:
    settings = {"hipaa": False, "quota": {"written_data_bytes": 1, "x": 1}, "x": {"y": 1}}
    created = await api.request("POST", "/projects", {"project": {"settings": settings}})
    assert "x" not in created["project"]["settings"]
    assert created["project"]["settings"]["quota"] == {"written_data_bytes": 1}
    [endpoint] = (await api.get(f"{branch_path}/endpoints"))["endpoints"]
    path = f"/projects/{endpoint['project_id']}/endpoints/{endpoint['id']}"
    body = {"endpoint": {"settings": {"pg_settings": {"work_mem": "4MB"}, "x": 1}}}
    changed = await api.request("PATCH", path, body)
    assert changed["endpoint"]["settings"] == {"pg_settings": {"work_mem": "4MB"}}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"key_name": "k", "projectId": "x"}, "projectId (unknown field)"),
        ({"key_name": "k", "project_id": None}, "project_id (expected `str`, got `null`)"),
        ({"key_name": "k", "project_id": ""}, "project_id (expected an id"),
        ({"key_name": " "}, "key_name (expected a name that is not blank"),
    ],
)
async def test_key_with_an_invalid_scope_or_name_is_refused(
    api: Client, body: object, words: str
) -> None:
    path = f"{api.organization_path}/api_keys"
    await api.expect_error(400, words, "POST", path, body)
    assert await api.get(path) == []


async def test_personal_key_cannot_be_limited_to_a_project(api: Client, project_id: str) -> None:
    body = {"key_name": "k", "project_id": project_id}
    await api.expect_error(400, "project_id (unknown field)", "POST", "/api_keys", body)


@pytest.mark.parametrize(
    "content",
    [b'{"project": {"name": "\xff"}}', b'{"x": "\xff", "project": {}}', b"\xff\xfe{\x00}\x00"],
)
async def test_body_that_is_not_utf_8_is_400(api: Client, content: bytes) -> None:
    await api.expect_error(400, "not UTF-8", "POST", "/projects", content=content, headers=JSON)
    assert await api.project_names() == []


def stored(file: Path) -> list[str]:
    """Return the content of a data file, without the use of API keys."""
    connection = sqlite3.connect(file)
    try:
        return [line for line in connection.iterdump() if '"api_keys"' not in line]
    finally:
        connection.close()


def url_of(route: str, ids: Mapping[str, str]) -> tuple[str, str]:
    method, _, template = route.partition(" ")
    return method, re.sub(r"\{(\w+)\}", lambda found: ids.get(found[1], "x"), template)


async def test_invalid_bodies_store_nothing(tmp_path: Path, clock: ManualClock) -> None:
    file = tmp_path / "neon.db"
    async with serve(data=file, clock=clock) as api:
        key, org_id = api.key, api.control_plane.org_id
        created = await api.project()
        ids = {
            "org_id": org_id,
            "project_id": created["project"]["id"],
            "branch_id": created["branch"]["id"],
            "endpoint_id": created["endpoints"][0]["id"],
            "database_name": "neondb",
        }
    before = await asyncio.to_thread(stored, file)
    async with serve(key, data=file, clock=clock) as api:
        for route, schema in BODIES.items():
            for field, body in one_case_per_field(schema):
                reply = await api.send(
                    *url_of(route, ids), content=json.dumps(body).encode(), headers=JSON
                )
                assert (reply.status, names_field(reply.message, field)) == (400, True), (
                    route,
                    field,
                    reply.message,
                )
    assert await asyncio.to_thread(stored, file) == before


def one_case_per_field(schema: Schema) -> list[Broken]:
    """Return one broken body for each field of a schema."""
    return list({case.field: case for case in broken(schema, Random(0))}.values())
