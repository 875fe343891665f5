"""Branches, restores, snapshots and schemas at any point in time, with history."""

from datetime import UTC, datetime, timedelta

import pytest
from psycopg import AsyncConnection

from control_plane.tests.server.conftest import Plane
from neonctl_async.errors import APIError
from tests.support.databases import execute, uri_of

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.long,
    pytest.mark.usefixtures("require_postgres"),
    pytest.mark.control_plane(history=True),
]

ROWS = "SELECT coalesce(array_agg(n ORDER BY n), '{}') FROM rows"


async def insert(uri: str, number: int) -> datetime:
    """Insert a row. Return a time after its commit, and before that of the next one."""
    async with await AsyncConnection.connect(uri, autocommit=True) as connection:
        await connection.execute("INSERT INTO rows VALUES (%s)", [number])
    return datetime.now(UTC)


async def fill(plane: Plane) -> list[datetime]:
    """Insert the rows 1 to 3, and return the times after each."""
    await execute(plane.uri, "CREATE TABLE rows (n int)", "SELECT 1")
    return [await insert(plane.uri, number) for number in (1, 2, 3)]


async def suspend(plane: Plane) -> None:
    await plane.neon.endpoints.suspend(plane.project_id, plane.project.endpoints[0].id, wait=True)


async def refusal(plane: Plane, status: int, **point: object) -> str:
    """Return the reason why no branch can be created from a point in time."""
    with pytest.raises(APIError) as refused:
        await plane.branch(**point)
    assert refused.value.status == status
    return refused.value.message


@pytest.mark.fact("branch-data-3")
@pytest.mark.parametrize("suspended", [False, True])
async def test_branch_starts_at_a_time_or_lsn(plane: Plane, suspended: bool) -> None:
    _, second, _ = await fill(plane)
    lsn = await execute(plane.uri, "SELECT pg_current_wal_lsn()::text")
    await insert(plane.uri, 4)
    if suspended:
        await suspend(plane)
    assert await execute(uri_of(await plane.branch(parent_timestamp=second)), ROWS) == [1, 2]
    assert await execute(uri_of(await plane.branch(parent_lsn=lsn)), ROWS) == [1, 2, 3]
    assert await execute(plane.uri, ROWS) == [1, 2, 3, 4]


@pytest.mark.parametrize("past", [False, True])
async def test_parent_lsn_of_a_branch_has_its_first_data(plane: Plane, past: bool) -> None:
    first, *_ = await fill(plane)
    branch = await plane.branch(**({"parent_timestamp": first} if past else {}))
    await insert(plane.uri, 4)
    shown = (await plane.neon.branches.get(plane.project_id, branch.branch.id)).parent_lsn
    again = await plane.branch(parent_lsn=shown)
    assert await execute(uri_of(again), ROWS) == ([1] if past else [1, 2, 3])


async def test_branch_is_restored_to_its_past_and_from_there_again(plane: Plane) -> None:
    first, second, _ = await fill(plane)
    names = (plane.project_id, plane.root_id)
    await plane.neon.branches.restore(
        *names,
        source_branch_id=plane.root_id,
        source_timestamp=second,
        preserve_under_name="before",
        wait=True,
    )
    assert await execute(plane.uri, ROWS) == [1, 2]
    again = await insert(plane.uri, 5)
    await insert(plane.uri, 6)
    assert await execute(uri_of(await plane.branch(parent_timestamp=again)), ROWS) == [1, 2, 5]
    assert "restore window" in await refusal(plane, 400, parent_timestamp=first)
    pages = plane.neon.branches.list(plane.project_id)
    [before] = [found async for found in pages if found.name == "before"]
    old = await plane.branch(parent_id=before.id)
    assert await execute(uri_of(old), ROWS) == [1, 2, 3]


async def test_snapshot_of_the_past_is_restored(plane: Plane) -> None:
    first, *_ = await fill(plane)
    names = (plane.project_id, plane.root_id)
    taken = await plane.neon.snapshots.create(*names, timestamp=first, wait=True)
    await plane.neon.snapshots.restore(
        plane.project_id, taken.snapshot.id, finalize_restore=True, wait=True
    )
    assert await execute(plane.uri, ROWS) == [1]


async def test_schemas_are_compared_with_the_past(plane: Plane) -> None:
    first, *_ = await fill(plane)
    await execute(plane.uri, "ALTER TABLE rows ADD COLUMN text text", "SELECT 1")
    compared = await plane.neon.branches.compare_schema(
        plane.project_id,
        plane.root_id,
        base_branch_id=plane.root_id,
        db_name="neondb",
        base_timestamp=first,
    )
    added = [line for line in (compared.diff or "").splitlines() if line.startswith("+ ")]
    assert "+    text text" in added
    with pytest.raises(APIError, match=r"base_timestamp: .* is not within the restore window"):
        await plane.neon.branches.compare_schema(
            plane.project_id,
            plane.root_id,
            base_branch_id=plane.root_id,
            db_name="neondb",
            base_timestamp=first + timedelta(hours=1),
        )


@pytest.mark.fact("branch-data-3")
async def test_databases_and_roles_are_those_of_the_time(plane: Plane) -> None:
    names = (plane.project_id, plane.root_id)
    await plane.neon.roles.create(*names, name="early", wait=True)
    await plane.neon.databases.create(*names, name="early", owner_name="early", wait=True)
    at = datetime.now(UTC)
    await plane.neon.databases.delete(*names, "early", wait=True)
    await plane.neon.databases.create(*names, name="late", owner_name="early", wait=True)
    branch = await plane.branch(parent_timestamp=at)
    own = await plane.neon.databases.list(plane.project_id, branch.branch.id)
    assert {database.name for database in own} == {"neondb", "early"}
    found = "SELECT array_agg(datname ORDER BY datname) FROM pg_database WHERE NOT datistemplate"
    assert await execute(uri_of(branch), found) == ["early", "neondb", "postgres"]


async def test_renamed_database_has_the_data_of_the_time(plane: Plane) -> None:
    _, second, _ = await fill(plane)
    lsn = await execute(plane.uri, "SELECT pg_current_wal_lsn()::text")
    names = (plane.project_id, plane.root_id)
    await plane.neon.databases.update(*names, "neondb", name="renamed", wait=True)
    found = "SELECT array_agg(datname ORDER BY datname) FROM pg_database WHERE NOT datistemplate"
    for point, rows in (({"parent_timestamp": second}, [1, 2]), ({"parent_lsn": lsn}, [1, 2, 3])):
        uri = uri_of(await plane.branch(**point))
        assert await execute(uri, ROWS) == rows
        assert await execute(uri, found) == ["postgres", "renamed"]
    past = plane.past_uri(f"timestamp:{second.isoformat()}").replace("/neondb?", "/renamed?")
    assert await execute(past, ROWS) == [1, 2]
    schema = await plane.neon.branches.schema(*names, db_name="renamed", timestamp=second)
    assert "CREATE TABLE public.rows" in (schema.sql or "")
    await plane.neon.branches.restore(
        *names,
        source_branch_id=plane.root_id,
        source_timestamp=second,
        preserve_under_name="before",
        wait=True,
    )
    assert await execute(plane.uri.replace("/neondb?", "/renamed?"), ROWS) == [1, 2]


async def test_owner_that_is_newer_than_the_time_is_created(plane: Plane) -> None:
    _, second, _ = await fill(plane)
    names = (plane.project_id, plane.root_id)
    await plane.neon.roles.create(*names, name="late", wait=True)
    await plane.neon.databases.update(*names, "neondb", owner_name="late", wait=True)
    uri = uri_of(await plane.branch(parent_timestamp=second))
    assert await execute(uri, "SELECT current_user::text") == "late"


async def test_points_without_data_are_refused_by_the_request(plane: Plane) -> None:
    await fill(plane)
    hour = timedelta(hours=1)
    created = plane.project.branch.created_at
    assert "restore window" in await refusal(plane, 400, parent_timestamp=created - hour)
    assert "restore window" in await refusal(plane, 400, parent_timestamp=datetime.now(UTC) + hour)
    assert "its history starts at" in await refusal(plane, 422, parent_lsn="0/1")
    assert "its WAL ends at LSN" in await refusal(plane, 422, parent_lsn="FF/0")
    await plane.neon.projects.update(plane.project_id, history_retention_seconds=0, wait=True)
    assert "restore window" in await refusal(plane, 400, parent_timestamp=created)
    names = [found.name async for found in plane.neon.branches.list(plane.project_id)]
    assert names == ["main"]


async def test_first_moment_of_a_branch_has_the_data_of_its_parent(plane: Plane) -> None:
    await fill(plane)
    branch = await plane.branch()
    await insert(uri_of(branch), 4)
    child = await plane.branch(
        parent_id=branch.branch.id, parent_timestamp=branch.branch.created_at
    )
    assert await execute(uri_of(child), ROWS) == [1, 2, 3]
