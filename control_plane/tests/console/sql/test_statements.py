"""Statements on a branch with a real database: values, bounds, errors, and changes."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import NamedTuple

import pytest

from neonctl_async import NeonClient
from neonctl_local.console.sql.session import Bounds, Result
from neonctl_local.console.sql.statements import Place, place_of, run_statement
from neonctl_local.postgres.client.messages import PostgresMessage
from neonctl_local.postgres.client.session import StatementError
from neonctl_local.settings import PostgresSettings
from tests.support.databases import databases, uri_of

SMALL = Bounds(rows=3, cell=5, total=1000)


class Branch(NamedTuple):
    """A branch with a database."""

    uri: str
    neon: NeonClient
    project_id: str
    endpoint_id: str

    async def run(self, sql: str) -> Result:
        """Run a statement that only reads."""
        return await run_statement(self.uri, sql)

    async def change(self, sql: str) -> Result:
        """Run a statement that may change data."""
        return await run_statement(self.uri, sql, allows_changes=True)

    async def error(self, sql: str, *, allows_changes: bool = False) -> PostgresMessage:
        """Return the error of a statement."""
        with pytest.raises(StatementError) as caught:
            await run_statement(self.uri, sql, allows_changes=allows_changes)
        return caught.value.message


@pytest.fixture
async def branch() -> AsyncIterator[Branch]:
    """A branch of a local control plane with real databases."""
    async with databases() as (_, neon):
        created = await neon.projects.create(name="test", wait=True)
        yield Branch(uri_of(created), neon, created.project.id, created.endpoints[0].id)


def texts(result: Result) -> list[list[str | None]]:
    """Return the values of a result."""
    return [[value.text for value in row] for row in result.rows]


@pytest.mark.postgres
async def test_values_are_shown_in_the_text_form_of_postgres(branch: Branch) -> None:
    await branch.change("CREATE TYPE pair AS (a int, b timestamptz)")
    values = (
        ("NULL", None),
        ("''", ""),
        ("42", "42"),
        ("1.50::numeric", "1.50"),
        ("true", "t"),
        ("ARRAY[1, NULL, 3]", "{1,NULL,3}"),
        ("""'{"a": [1, null]}'::jsonb""", '{"a": [1, null]}'),
        (r"'\x00ff'::bytea", r"\x00ff"),
        ("'infinity'::timestamptz", "infinity"),
        ("'2026-11-23 01:02:03+00'::timestamptz", "2026-11-23 01:02:03+00"),
        ("'4713-01-01 BC'::date", "4713-01-01 BC"),
        ("'1 mon 2 days'::interval", "1 mon 2 days"),
        ("ROW(1, 'infinity')::pair", "(1,infinity)"),
        ("'[1,3)'::int4range", "[1,3)"),
        ("'grün'", "grün"),
    )
    result = await branch.run(f"SELECT {', '.join(sql for sql, _ in values)}")
    assert texts(result) == [[text for _, text in values]]
    assert result.status == "SELECT 1"
    assert result.columns is not None
    assert [column.is_number for column in result.columns][1:5] == [False, True, True, False]


@pytest.mark.postgres
async def test_result_is_bounded(branch: Branch) -> None:
    sql = "SELECT repeat('é', 50 * g), NULL FROM generate_series(0, {}) g"
    cut = await run_statement(branch.uri, sql.format(9), bounds=SMALL)
    assert texts(cut) == [["", None], ["ééééé", None], ["ééééé", None]]
    assert [row[0].is_cut for row in cut.rows] == [False, True, True]
    assert (cut.has_more, cut.status) == (True, "")
    complete = await run_statement(branch.uri, sql.format(2), bounds=SMALL)
    assert (complete.has_more, complete.status) == (False, "SELECT 3")
    wide = "SELECT repeat('x', 1000000), g FROM generate_series(1, 10) g"
    few = await run_statement(branch.uri, wide, bounds=Bounds(rows=9, cell=500, total=1000))
    assert (len(few.rows), few.has_more) == (2, True)


@pytest.mark.postgres
async def test_one_row_is_bounded_too(branch: Branch) -> None:
    columns = ", ".join(["repeat('x', 1000)"] * 100)
    result = await run_statement(branch.uri, f"SELECT {columns}", bounds=Bounds(3, 1000, 5000))
    [row] = result.rows
    assert len(row) == 100
    assert 4000 < sum(len(value.text or "") for value in row) <= 5000
    assert [value.is_cut for value in row] == [False] * 4 + [True] * 96


@pytest.mark.postgres
async def test_most_columns_with_the_longest_names_are_shown(branch: Branch) -> None:
    names = [f"{number:063}" for number in range(1664)]
    columns = ", ".join(f'{number} AS "{name}"' for number, name in enumerate(names))
    result = await branch.run(f"SELECT {columns}")
    assert result.columns is not None
    assert [column.name for column in result.columns] == names


@pytest.mark.postgres
async def test_statement_only_reads_unless_changes_are_allowed(branch: Branch) -> None:
    insert = "INSERT INTO t SELECT generate_series(1, 3)"
    assert (await branch.change("CREATE TABLE t (id int PRIMARY KEY)")).status == "CREATE TABLE"
    for sql in (insert, "DROP TABLE t", "SELECT nextval('s')", "TRUNCATE t"):
        await branch.change("CREATE SEQUENCE IF NOT EXISTS s")
        assert (await branch.error(sql)).sqlstate == "25006"
    escape = "SELECT set_config('transaction_read_only', 'off', true) UNION SELECT 'x'"
    assert (await branch.error(escape)).sqlstate == "25001"
    for sql in ("COMMIT", "SET TRANSACTION READ WRITE", "BEGIN", "SET ROLE NONE"):
        await branch.run(sql)
    assert (await branch.error(insert)).sqlstate == "25006"
    assert texts(await branch.run("SELECT count(*) FROM t")) == [["0"]]
    inserted = await branch.change(insert)
    assert (inserted.columns, inserted.status) == (None, "INSERT 0 3")
    deleted = await branch.change("DELETE FROM t WHERE id < 3 RETURNING id")
    assert (texts(deleted), deleted.status) == ([["1"], ["2"]], "DELETE 2")
    assert (await branch.change("VACUUM t")).status == "VACUUM"


@pytest.mark.postgres
async def test_changing_statement_runs_to_its_end_beyond_the_rows_that_are_kept(
    branch: Branch,
) -> None:
    await branch.change("CREATE TABLE t AS SELECT generate_series(1, 50) AS id")
    sql = "DELETE FROM t RETURNING id"
    result = await run_statement(branch.uri, sql, allows_changes=True, bounds=SMALL)
    assert (len(result.rows), result.has_more, result.status) == (3, True, "DELETE 50")


@pytest.mark.postgres
async def test_error_of_postgres_has_its_code_and_place(branch: Branch) -> None:
    sql = "SELECT *\n  FROM nowhere"
    error = await branch.error(sql)
    assert (error.sqlstate, error.message) == ("42P01", 'relation "nowhere" does not exist')
    assert place_of(error, sql) == Place(2, 8, "  FROM nowhere")
    assert (await branch.error("SELECT 1; SELECT 2")).sqlstate == "42601"
    assert (await branch.error("SELECT 1 / 0")).sqlstate == "22012"
    assert (await branch.error("SELECT $1::int")).sqlstate == "08P01"
    assert (await branch.error("SELECT '\0'")).sqlstate == "22021"
    assert "password" not in repr(error)


@pytest.mark.postgres
@pytest.mark.parametrize("tls", [False, True])
async def test_statement_starts_a_suspended_compute(tls: bool) -> None:
    async with databases(postgres=PostgresSettings(tls=tls)) as (_, neon):
        created = await neon.projects.create(name="test", wait=True)
        project_id, endpoint_id = created.project.id, created.endpoints[0].id
        await neon.endpoints.suspend(project_id, endpoint_id, wait=True)
        assert texts(await run_statement(uri_of(created), "SELECT 1")) == [["1"]]
        wrong = uri_of(created).replace("@", "x@", 1)
        with pytest.raises(StatementError) as caught:
            await run_statement(wrong, "SELECT 1")
        assert caught.value.message.sqlstate == "28P01"


@pytest.mark.postgres
async def test_copy_is_refused_and_does_not_hang(branch: Branch) -> None:
    await branch.change("CREATE TABLE t (id int)")
    for sql in ("COPY t FROM STDIN", "COPY t TO STDOUT", "COPY pg_class TO STDOUT"):
        error = await branch.error(sql, allows_changes=True)
        assert "cannot copy from or to a file" in error.message


@pytest.mark.postgres
async def test_notices_are_kept_up_to_a_number(branch: Branch) -> None:
    sql = "DO $$ BEGIN FOR i IN 1..{} LOOP RAISE NOTICE 'number %', i; END LOOP; END $$"
    result = await branch.run(sql.format(2))
    assert [notice.message for notice in result.notices] == ["number 1", "number 2"]
    assert len((await branch.run(sql.format(500))).notices) == 100
    assert (await branch.run("")).status == ""


async def running(branch: Branch, marker: str) -> int:
    """Return the number of sessions that run a statement with a marker."""
    sql = (
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active'"
        f" AND query LIKE '%{marker}%' AND pid <> pg_backend_pid()"
    )
    ((text,),) = texts(await branch.run(sql))
    return int(text or "0")


@pytest.mark.postgres
async def test_slow_statement_is_cancelled(branch: Branch) -> None:
    with pytest.raises(StatementError) as caught:
        await run_statement(branch.uri, "SELECT pg_sleep(60)", seconds=0.2)
    assert caught.value.message.sqlstate == "57014"
    task = asyncio.create_task(branch.run("SELECT pg_sleep(60), 'mark' || 'er'"))
    while not await running(branch, "''mark'' ||"):
        assert not task.done()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    while await running(branch, "''mark'' ||"):
        pass


@pytest.mark.postgres
async def test_broken_connection_is_an_error_without_the_address(branch: Branch) -> None:
    killed = await branch.error("SELECT pg_terminate_backend(pg_backend_pid())")
    assert killed.sqlstate == "57P01"
    uri = re.sub(r":\d+/", ":1/", branch.uri)
    with pytest.raises(StatementError) as caught:
        await run_statement(uri, "SELECT 1")
    assert caught.value.message.sqlstate == "08006"


def test_place_of_an_error_is_a_line_and_a_column() -> None:
    def place(sql: str, position: int | None) -> Place | None:
        return place_of(PostgresMessage(severity="ERROR", message="", position=position), sql)

    assert place("SELEC", 1) == Place(1, 1, "SELEC")
    assert place("é\n\nSELEC 1", 4) == Place(3, 1, "SELEC 1")
    assert place("SELECT", 7) == Place(1, 7, "SELECT")
    assert place("SELECT", 8) is None
    assert place("SELECT", None) is None
