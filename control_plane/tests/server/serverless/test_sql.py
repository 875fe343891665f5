"""``POST /sql``, as Neon's serverless driver sends it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any, LiteralString
from urllib.parse import urlsplit

import aiohttp
import msgspec
import pytest

from neonctl_async import NeonClient
from neonctl_async.types import AllowedIps, ProjectCreated, ProjectSettings
from neonctl_local import Fault, LocalControlPlane
from neonctl_local.server.serverless import endpoints
from neonctl_local.server.serverless.pool import SESSIONS
from tests.support.databases import databases, execute, uri_of

RUNNING: LiteralString = (
    "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'"
)

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("require_postgres")]


class Sql:
    """A client of ``/sql``."""

    def __init__(self, http: aiohttp.ClientSession, url: str, uri: str) -> None:
        self.http = http
        self.url = url
        self.uri = uri

    async def post(self, body: Any, **headers: str) -> tuple[int, Any]:
        """Return the status and the content of a response."""
        sent = {"Neon-Connection-String": self.uri} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        data = BytesIO(msgspec.json.encode(body))  # aiohttp warns of large bytes
        async with self.http.post(self.url, data=data, headers=sent) as response:
            return response.status, await response.json()

    async def rows(self, query: str, *params: Any, **headers: str) -> Any:
        """Return the rows of a query that succeeds."""
        status, content = await self.post({"query": query, "params": params}, **headers)
        assert status == 200, content
        return content["rows"]


def allowing(*ips: str) -> ProjectSettings:
    return ProjectSettings(allowed_ips=AllowedIps(ips=[*ips]))


def nested(depth: int) -> list[Any]:
    """Return a list in a list, and so on."""
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


@asynccontextmanager
async def serverless(**settings: Any) -> AsyncGenerator[tuple[Sql, NeonClient, ProjectCreated]]:
    async with databases(**settings) as (control_plane, neon), aiohttp.ClientSession() as http:
        project = await neon.projects.create(name="test", wait=True)
        yield Sql(http, url_of(control_plane), uri_of(project)), neon, project


@asynccontextmanager
async def serverless_and_server() -> AsyncGenerator[tuple[Sql, LocalControlPlane]]:
    async with databases() as (control_plane, neon), aiohttp.ClientSession() as http:
        project = await neon.projects.create(name="test", wait=True)
        yield Sql(http, url_of(control_plane), uri_of(project)), control_plane


def url_of(control_plane: LocalControlPlane) -> str:
    return control_plane.base_url.replace("/api/v2", "/sql")


@pytest.mark.fact("serverless-1")
async def test_result_has_the_form_of_node_postgres() -> None:
    async with serverless() as (sql, _, _):
        status, content = await sql.post(
            {"query": "SELECT $1::int AS n, NULL AS nothing", "params": [7]}
        )
    assert status == 200
    [number, nothing] = content.pop("fields")
    assert content == {
        "command": "SELECT",
        "rowCount": 1,
        "rows": [{"n": 7, "nothing": None}],
        "rowAsArray": False,
    }
    assert number == {
        "name": "n",
        "dataTypeID": 23,
        "tableID": 0,
        "columnID": 0,
        "dataTypeSize": 4,
        "dataTypeModifier": -1,
        "format": "text",
    }
    assert nothing["name"] == "nothing"


@pytest.mark.fact("serverless-2")
async def test_headers_choose_the_form_of_rows() -> None:
    query = "SELECT 1 AS a, true AS b, '{1,2}'::bigint[] AS c"
    async with serverless() as (sql, _, _):
        assert await sql.rows(query) == [{"a": 1, "b": True, "c": ["1", "2"]}]
        assert await sql.rows(query, Neon_Array_Mode="true") == [[1, True, ["1", "2"]]]
        raw = await sql.rows(query, Neon_Raw_Text_Output="true")
        assert raw == [{"a": "1", "b": "t", "c": "{1,2}"}]
        _, content = await sql.post({"query": query, "arrayMode": True})
        assert content["rows"] == [[1, True, ["1", "2"]]]


async def test_error_has_the_fields_of_postgres() -> None:
    async with serverless() as (sql, _, _):
        status, error = await sql.post({"query": "SELECT * FROM nothing"})
        assert (status, error["code"], error["position"]) == (400, "42P01", "15")
        assert (error["severity"], error["message"]) == (
            "ERROR",
            'relation "nothing" does not exist',
        )
        await sql.rows("CREATE TABLE t (id int CONSTRAINT small CHECK (id < 10))")
        _, error = await sql.post({"query": "INSERT INTO t VALUES ($1)", "params": [10]})
        assert (error["code"], error["table"], error["constraint"]) == ("23514", "t", "small")
        assert await sql.rows("SELECT 1 AS one") == [{"one": 1}]


@pytest.mark.fact("serverless-3")
async def test_batch_is_one_transaction() -> None:
    async with serverless() as (sql, _, _):
        await sql.rows("CREATE TABLE t (id int)")
        insert = {"query": "INSERT INTO t VALUES (1)"}
        status, error = await sql.post({"queries": [insert, {"query": "SELECT 1 / 0"}]})
        assert (status, error["code"]) == (400, "22012")
        assert await sql.rows("SELECT count(*)::int AS n FROM t") == [{"n": 0}]
        _, content = await sql.post({"queries": [insert, {"query": "TABLE t"}]})
        assert [result["rowCount"] for result in content["results"]] == [1, 1]
        assert await sql.rows("SELECT count(*)::int AS n FROM t") == [{"n": 1}]


@pytest.mark.fact("serverless-3")
async def test_headers_choose_the_transaction_of_a_batch() -> None:
    shows = [
        {"query": f"SHOW transaction_{name}"} for name in ("isolation", "read_only", "deferrable")
    ]
    async with serverless() as (sql, _, _):
        _, content = await sql.post(
            {"queries": shows},
            Neon_Batch_Isolation_Level="Serializable",
            Neon_Batch_Read_Only="true",
            Neon_Batch_Deferrable="true",
            Neon_Array_Mode="true",
        )
        assert [result["rows"] for result in content["results"]] == [
            [["serializable"]],
            [["on"]],
            [["on"]],
        ]
        status, error = await sql.post({"queries": shows}, Neon_Batch_Isolation_Level="Snapshot")
        assert (status, error["message"]) == (400, "invalid isolation level")


async def test_session_is_clean_at_each_use() -> None:
    leave = [
        "SET search_path TO elsewhere",
        "CREATE TEMPORARY TABLE left_behind (id int)",
        "SELECT pg_advisory_lock(1)",
        "PREPARE left_behind AS SELECT 1",
        "LISTEN left_behind",
        "BEGIN",
    ]
    find = (
        "SELECT current_setting('search_path') AS path, to_regclass('left_behind') AS temporary,"
        " (SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory') AS locks,"
        " (SELECT count(*)::int FROM pg_prepared_statements WHERE name LIKE 'left%') AS prepared,"
        " (SELECT count(*)::int FROM pg_listening_channels()) AS channels,"
        " now() = statement_timestamp() AS alone"
    )
    async with serverless() as (sql, _, _):
        [before] = await sql.rows(find)
        for statement in leave:
            await sql.rows(statement)
            assert await sql.rows(find) == [before]


async def test_requests_in_turn_use_one_session() -> None:
    async with serverless() as (sql, _, _):
        pids = [(await sql.rows("SELECT pg_backend_pid() AS pid"))[0]["pid"] for _ in range(10)]
    # A change in the control plane meanwhile, such as the size of the data, replaces the session.
    assert len(set(pids)) < len(pids)


async def test_many_requests_at_once_have_few_sessions() -> None:
    count = "SELECT count(*) FROM pg_stat_activity WHERE usename = current_user"
    async with serverless() as (sql, _, _):
        found = await asyncio.gather(
            *(sql.rows(f"SELECT $1::int AS n, ({count})::int AS open", n) for n in range(200))
        )
    assert [rows[0]["n"] for rows in found] == [*range(200)]
    # The server has not ended all sessions that were replaced.
    assert max(rows[0]["open"] for rows in found) <= 3 * SESSIONS


async def test_token_is_refused() -> None:
    async with serverless() as (sql, _, _):
        status, error = await sql.post({"query": "SELECT 1"}, Authorization="Bearer token")
    assert status == 400
    assert "required password; tokens (authToken) are not accepted" in error["message"]


async def test_sessions_outlive_no_rule_that_refuses_their_client() -> None:
    async with serverless() as (sql, neon, project):
        id = project.project.id
        assert await sql.rows("SELECT 1 AS one") == [{"one": 1}]
        await neon.projects.update(id, settings=allowing("192.0.2.1"))
        status, error = await sql.post({"query": "SELECT 1"})
        assert status == 400
        assert "is not allowed to connect" in error["message"]
        await neon.projects.update(id, settings=allowing())
        assert await sql.rows("SELECT 1 AS one") == [{"one": 1}]
        role = urlsplit(sql.uri).username or ""
        await neon.roles.reset_password(id, project.branch.id, role, wait=True)
        status, error = await sql.post({"query": "SELECT 1"})
        assert (status, error["code"]) == (400, "28P01")


async def test_planned_faults_apply() -> None:
    async with serverless_and_server() as (sql, control_plane):
        control_plane.inject(Fault(route="POST /sql", status=503, times=1))
        assert (await sql.post({"query": "SELECT 1"}))[0] == 503
        control_plane.inject(Fault(route="POST /sql", delay=0.01, times=2))
        assert await sql.rows("SELECT 1 AS one") == [{"one": 1}]
        assert await sql.rows("SELECT length($1) AS n", "x" * 2_000_000) == [{"n": 2_000_000}]


async def test_host_that_is_no_text_is_refused() -> None:
    async with serverless() as (sql, _, _):
        parts = urlsplit(sql.url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        body = b'{"query": "SELECT 1"}'
        head = f"POST /sql HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Length: {len(body)}\r\n"
        target = b"Neon-Connection-String: postgres://a:b@ep-\xff.test/d\r\n\r\n"
        writer.write(head.encode() + target + body)
        assert (await reader.readline()).split()[1] == b"400"
        writer.close()
        assert await execute(sql.uri, "SELECT 1") == 1


async def test_batch_whose_session_ends_has_the_reason() -> None:
    async with serverless() as (sql, _, _):
        end = {"query": "SELECT pg_terminate_backend(pg_backend_pid())"}
        status, error = await sql.post({"queries": [end]})
        assert (status, error["code"]) == (400, "57P01")
        assert await sql.rows("SELECT 1 AS one") == [{"one": 1}]


async def test_vectors_of_the_catalog_are_texts() -> None:
    async with serverless() as (sql, _, _):
        rows = await sql.rows("SELECT '1 2'::int2vector AS a, ''::oidvector AS b")
    assert rows == [{"a": "1 2", "b": ""}]


async def test_suspended_compute_starts() -> None:
    async with serverless() as (sql, neon, project):
        await sql.rows("SELECT 1")
        [compute] = project.endpoints
        await neon.endpoints.suspend(project.project.id, compute.id, wait=True)
        assert await sql.rows("SELECT 1 AS one") == [{"one": 1}]


async def test_deleted_compute_is_an_error() -> None:
    async with serverless() as (sql, neon, project):
        await sql.rows("SELECT 1")
        await neon.endpoints.delete(project.project.id, project.endpoints[0].id, wait=True)
        status, error = await sql.post({"query": "SELECT 1"})
    assert status == 400
    assert "The requested endpoint could not be found" in error["message"]


async def test_deletion_of_a_compute_ends_its_statements() -> None:
    async with serverless() as (sql, neon, project):
        running = asyncio.create_task(sql.post({"query": "SELECT pg_sleep(60)"}))
        async with asyncio.timeout(10):
            while not await execute(sql.uri, RUNNING):  # noqa: ASYNC110 - another process starts it
                await asyncio.sleep(0.02)
        await neon.endpoints.delete(project.project.id, project.endpoints[0].id, wait=True)
        status, error = await running
    assert (status, error["code"]) == (400, "57P01")


async def test_host_of_the_pooler_is_served() -> None:
    async with serverless() as (sql, _, project):
        sql.uri = project.connection_uri.as_pooled().reveal()
        assert await sql.rows("SELECT 1 AS one") == [{"one": 1}]
        await sql.rows("SET search_path = other")
        [path] = await sql.rows("SHOW search_path")
    assert path["search_path"] != "other"


async def test_statement_of_a_client_that_left_is_cancelled() -> None:
    async with serverless() as (sql, _, _):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await sql.rows("SELECT pg_sleep(60)")
        async with asyncio.timeout(10):
            while await execute(sql.uri, RUNNING):  # noqa: ASYNC110 - another process ends it
                await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"query": 1}, "could not parse the HTTP request body"),
        ({}, "could not parse the HTTP request body"),
        ({"query": "SELECT 1", "params": [0] * 65_536}, "Postgres has at most 65535"),
        ({"query": "COPY (SELECT 1) TO STDOUT"}, "COPY from or to the client is not possible"),
        ({"query": "SELECT 1; SELECT 2"}, "multiple commands"),
        ({"query": "SELECT $1::text\0\0\1\0", "params": ["a"]}, "NUL character"),
        ({"query": "SELECT $1", "params": [nested(500)]}, "too deeply nested"),
    ],
)
async def test_unusable_request_is_refused_with_the_reason(body: Any, message: str) -> None:
    async with serverless() as (sql, _, _):
        status, error = await sql.post(body)
        assert status == 400
        assert message in error["message"]
        assert await sql.rows("SELECT 1 AS one") == [{"one": 1}]


async def test_copy_from_the_client_is_refused() -> None:
    async with serverless() as (sql, _, _):
        await sql.rows("CREATE TABLE t (id int)")
        status, error = await sql.post({"query": "COPY t FROM STDIN"})
        assert (status, error["code"]) == (400, "0A000")
        assert await sql.rows("SELECT 1 AS one") == [{"one": 1}]


async def test_large_requests_and_results_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "MAXIMUM_BYTES", 100_000)
    async with serverless() as (sql, _, _):
        assert len((await sql.rows("SELECT repeat('x', 90000) AS x"))[0]["x"]) == 90_000
        status, error = await sql.post({"query": "SELECT repeat('x', 100001)"})
        assert (status, error["message"]) == (507, "response is too large (max is 100000 bytes)")
        status, error = await sql.post({"query": "SELECT $1", "params": ["x" * 100_000]})
        assert (status, error["message"]) == (413, "request is too large (max is 100000 bytes)")


async def test_body_may_be_larger_than_those_of_the_api() -> None:
    async with serverless() as (sql, _, _):
        [row] = await sql.rows("SELECT length($1) AS n", "x" * 10_000_000)
    assert row == {"n": 10_000_000}


async def test_only_pages_of_allowed_origins_send_statements() -> None:
    async with serverless(allowed_origins=["http://localhost:3000"]) as (sql, _, _):
        headers = {"Neon-Connection-String": sql.uri, "Origin": "http://localhost:3000"}
        body = {"query": "SELECT 1 AS one"}
        async with sql.http.options(sql.url, headers={"Origin": headers["Origin"]}) as response:
            assert response.status == 204
            assert "Neon-Connection-String" in response.headers["Access-Control-Allow-Headers"]
        async with sql.http.post(sql.url, headers=headers, json=body) as response:
            assert response.headers["Access-Control-Allow-Origin"] == "http://localhost:3000"
        for send in (sql.http.options, sql.http.post):
            other = headers | {"Origin": "http://localhost:3001"}
            async with send(sql.url, headers=other, json=body) as response:
                assert response.status == 403
                assert "Access-Control-Allow-Origin" not in response.headers
                assert "--allow-origin" in (await response.json())["message"]


async def test_password_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    async with serverless() as (sql, _, _):
        await sql.rows("SELECT 1")
        await sql.post({"query": "nonsense"})
        password = urlsplit(sql.uri).password
    assert password is not None
    assert password not in caplog.text


async def test_without_databases_the_option_is_named() -> None:
    async with LocalControlPlane() as control_plane, aiohttp.ClientSession() as http:
        async with http.post(url_of(control_plane), json={"query": "SELECT 1"}) as response:
            assert response.status == 501
            assert "--postgres" in (await response.json())["message"]
