"""Neon's MCP server, ``@neondatabase/mcp-server-neon``, on the local control plane."""

import json
import os
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import TextContent

from neonctl_local import LocalControlPlane
from tests.contract.node import node
from tests.support.databases import databases
from tests.support.pages import ROOT
from tests.support.postgres import skip_without_postgres

pytestmark = [pytest.mark.mcp, pytest.mark.postgres]

PROGRAM = ROOT / ".mcp/node_modules/@neondatabase/mcp-server-neon/dist/index.js"
PRELOAD = ROOT / "examples/serverless/local.mjs"


class Tools:
    """The tools of the MCP server."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    async def call(self, tool: str, **arguments: object) -> str:
        """Return the text of the result of a tool that succeeds."""
        result = await self._session.call_tool(tool, {"params": arguments})
        texts = [part.text for part in result.content if isinstance(part, TextContent)]
        assert not result.is_error, texts
        return "\n".join(texts)


@asynccontextmanager
async def tools(control_plane: LocalControlPlane) -> AsyncGenerator[Tools]:
    parameters = StdioServerParameters(
        command=node(),
        args=[
            *("--import", str(PRELOAD), str(PROGRAM)),
            *("start", control_plane.api_key, "--no-analytics"),
        ],
        env={
            "NEON_API_HOST": control_plane.base_url,
            "SENTRY_DSN": "",
            "PATH": os.environ["PATH"],
        },
    )
    async with (
        stdio_client(parameters) as (reading, writing),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        yield Tools(session)


@pytest.fixture(autouse=True)
def postgres() -> None:
    """Skip the test on a machine without Postgres."""
    skip_without_postgres()


async def test_tools_work_from_a_project_to_its_deletion() -> None:
    async with databases() as (control_plane, neon), tools(control_plane) as mcp:
        await mcp.call("create_project", name="shop")
        [project] = await neon.projects.list().collect()
        assert project.id in await mcp.call("list_projects")
        where = {"projectId": project.id}
        await mcp.call("run_sql", sql="CREATE TABLE notes (id int PRIMARY KEY, body text)", **where)
        await mcp.call("run_sql", sql="INSERT INTO notes VALUES (1, 'milk')", **where)
        assert "milk" in await mcp.call("run_sql", sql="TABLE notes", **where)
        explained = await mcp.call("explain_sql_statement", sql="TABLE notes", **where)
        assert "Shared Hit Blocks" in explained
        await mcp.call("create_branch", branchName="preview", **where)
        [preview] = [
            one for one in await neon.branches.list(project.id).collect() if not one.default
        ]
        branch = where | {"branchId": preview.id}
        statements = ["ALTER TABLE notes ADD done bool", "DELETE FROM notes"]
        await mcp.call("run_sql_transaction", sqlStatements=statements, **branch)
        assert "milk" in await mcp.call("run_sql", sql="TABLE notes", **where)
        assert "done" in await mcp.call("describe_table_schema", tableName="notes", **branch)
        assert "notes" in await mcp.call("get_database_tables", **branch)
        migration = "ALTER TABLE notes ADD due date"
        prepared = await mcp.call(
            "prepare_database_migration", databaseName="neondb", migrationSql=migration, **where
        )
        [id] = re.findall(r"<migration_id>(.*)</migration_id>", prepared)
        await mcp.call("complete_database_migration", migrationId=id)
        assert "due" in await mcp.call("describe_table_schema", tableName="notes", **where)
        await neon.operations.wait_for_project(project.id)  # the project is locked until then
        tuned = where | {"databaseName": "neondb"}
        query = "SELECT body FROM notes WHERE body = 'milk'"
        tuning = json.loads(await mcp.call("prepare_query_tuning", sql=query, **tuned))
        assert [one["tableName"] for one in tuning["tableSchemas"]] == ["public.notes"]
        await mcp.call(
            "complete_query_tuning",
            tuningId=tuning["tuningId"],
            temporaryBranchId=tuning["temporaryBranch"]["id"],
            suggestedSqlStatements=["CREATE INDEX bodies ON notes (body)"],
            applyChanges=True,
            **tuned,
        )
        assert "bodies" in await mcp.call("describe_table_schema", tableName="notes", **where)
        await neon.operations.wait_for_project(project.id)
        assert len(await neon.branches.list(project.id).collect()) == 2
        await mcp.call("delete_branch", **branch)
        await neon.operations.wait_for_project(project.id)  # the project is locked until then
        await mcp.call("delete_project", **where)
        assert await neon.projects.list().collect() == []
