"""The SQL page, without Postgres and with it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import NamedTuple

import pytest

from control_plane.tests.console.visitor import Page, Visitor, visiting
from neonctl_async import NeonClient
from neonctl_local.console.sql.statements import run_statement
from tests.support.databases import READ_WRITE, databases, uri_of


async def test_page_without_postgres_shows_how_to_start_it(
    visitor: Visitor, project_id: str
) -> None:
    page = await visitor.get(f"/projects/{project_id}/sql")
    assert "neonctl-async local --postgres" in page.text
    fields = {"csrf": page.form("/sign-out").fields["csrf"], "sql": "SELECT 1"}
    posted = await visitor.request("POST", f"/projects/{project_id}/sql", data=fields)
    assert (posted.status, "--postgres" in posted.text) == (200, True)


async def test_page_of_an_unknown_project_does_not_exist(visitor: Visitor) -> None:
    assert (await visitor.get("/projects/late-frost-12345678/sql")).status == 404


class World(NamedTuple):
    """A person on the SQL page of a project with a real database."""

    visitor: Visitor
    neon: NeonClient
    path: str
    project_id: str
    uri: str

    async def run(self, sql: str, **fields: str) -> Page:
        """Run a statement."""
        page = await self.visitor.get(self.path)
        return await self.visitor.post(page, self.path, sql=sql, **fields)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """The first user at a project of a local control plane with real databases."""
    async with databases() as (control_plane, neon), visiting(control_plane) as visitor:
        created = await neon.projects.create(name="test", wait=True)
        path = f"/projects/{created.project.id}/sql"
        yield World(visitor, neon, path, created.project.id, uri_of(created))


@pytest.mark.postgres
async def test_statement_shows_its_rows(world: World) -> None:
    page = await world.run("SELECT 1 AS one, NULL AS nothing, '<b>' AS markup, repeat('x', 300)")
    assert "SELECT 1 in " in page.text
    assert "one nothing markup repeat 1 NULL <b>" in page.text
    assert "<b>" not in page.html
    assert page.form(world.path).fields["sql"].startswith("SELECT 1 AS one")
    assert page.headers["Cache-Control"] == "no-store"
    password = world.uri.partition("@")[0].rpartition(":")[2]
    assert password not in page.html
    many = await world.run("SELECT generate_series(1, 1001)")
    assert "The page shows the first 1,000 rows: there are more." in many.text
    assert "No rows" in (await world.run("SELECT 1 WHERE false")).text
    assert "Nothing to run" in (await world.run("-- nothing")).text
    notice = await world.run("DO $$ BEGIN RAISE WARNING 'take care'; END $$")
    assert "WARNING take care" in notice.text


@pytest.mark.postgres
async def test_changes_must_be_allowed(world: World) -> None:
    page = await world.run("CREATE TABLE t (id int)")
    assert page.status == 422
    assert "select “Allow changes” and run it again" in page.text
    allowed = await world.visitor.post(page, world.path, changes="yes")
    assert "CREATE TABLE in " in allowed.text
    assert allowed.form(world.path).fields["changes"] == "yes"


@pytest.mark.postgres
async def test_error_is_shown_with_its_place(world: World) -> None:
    page = await world.run("SELECT *\nFROM nowhere")
    assert page.status == 422
    assert 'relation "nowhere" does not exist' in page.text
    assert "Line 2, column 6 · SQLSTATE 42P01" in page.text
    assert page.form(world.path).fields["sql"] == "SELECT *\nFROM nowhere"
    assert "the statement is empty" in (await world.run(" ")).text
    both = await world.run("SELECT 1; SELECT 2")
    assert "cannot insert multiple commands" in both.text


@pytest.mark.postgres
async def test_statement_runs_on_the_chosen_branch_database_and_role(world: World) -> None:
    branch = await world.neon.branches.create(
        world.project_id, name="other", endpoints=[READ_WRITE], wait=True
    )
    where = (world.project_id, branch.branch.id)
    await world.neon.roles.create(*where, name="reader", wait=True)
    await world.neon.databases.create(*where, name="second", owner_name="reader", wait=True)
    page = await world.visitor.get(f"{world.path}?branch={branch.branch.id}")
    assert page.form(world.path).fields["branch"] == "other"
    # A name that is the id of another branch does not replace it.
    await world.neon.branches.create(world.project_id, name=branch.branch.id, wait=True)
    page = await world.visitor.get(f"{world.path}?branch={branch.branch.id}")
    assert page.form(world.path).fields["branch"] == "other"
    chosen = {"database": "second", "role": "reader"}
    sql = "SELECT current_database(), current_user"
    page = await world.visitor.post(page, world.path, sql=sql, **chosen)
    assert "second reader" in page.text
    assert page.form(world.path).fields.items() >= chosen.items()
    refused = await world.visitor.post(page, world.path, branch="main")
    assert (refused.status, "has no database 'second'" in refused.text) == (400, True)
    fields = page.form(world.path).fields | {"branch": "main", "do": "choose"}
    page = await world.visitor.request("POST", world.path, data=fields)
    assert page.form(world.path).fields["database"] == "neondb"
    assert page.form(world.path).fields["sql"] == sql
    missing = await world.visitor.post(page, world.path, branch="nowhere")
    assert (missing.status, "'nowhere'" in missing.text) == (404, True)
    assert missing.form(world.path).fields["branch"] == "nowhere"
    assert missing.form(world.path).fields["sql"] == sql


@pytest.mark.postgres
async def test_branch_without_compute_or_database_is_an_error_in_place(world: World) -> None:
    await world.neon.branches.create(world.project_id, name="idle", wait=True)
    page = await world.run("SELECT 1", branch="idle")
    assert (page.status, "has no endpoint" in page.text) == (400, True)
    [branch] = await world.neon.branches.list(world.project_id, search="main").collect()
    await world.neon.databases.delete(world.project_id, branch.id, "neondb", wait=True)
    page = await world.run("SELECT 1")
    assert "the branch has no database: create one first" in page.text


async def running(uri: str) -> bool:
    """Return whether another session runs a statement."""
    sql = "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(9)%'"
    sql = f"{sql} AND state = 'active' AND pid <> pg_backend_pid()"
    return bool((await run_statement(uri, sql)).rows)


@pytest.mark.postgres
async def test_statement_is_cancelled_when_the_person_leaves(world: World) -> None:
    visit = asyncio.create_task(world.run("SELECT pg_sleep(9)"))
    while not await running(world.uri):
        assert not visit.done()
    visit.cancel()
    with suppress(asyncio.CancelledError):
        await visit
    while await running(world.uri):
        pass
