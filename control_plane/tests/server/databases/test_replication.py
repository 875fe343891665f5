"""Logical replication from a branch: to a program, and to another branch."""

import asyncio
from asyncio.subprocess import PIPE, Process
from urllib.parse import urlsplit

import psycopg
import pytest

from control_plane.tests.server.conftest import Plane
from neonctl_async.types import BranchCreated, ProjectSettings
from neonctl_local import BackgroundIntervals
from neonctl_local.postgres.binaries import find_installations
from tests.support.databases import execute, uri_of
from tests.support.until import until

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.process,
    pytest.mark.long,
    pytest.mark.usefixtures("require_postgres"),
]

SLOT = "SELECT pg_create_logical_replication_slot('changes', 'pgoutput')::text"
PUBLICATION = (
    "CREATE TABLE orders (item text PRIMARY KEY)",
    "CREATE PUBLICATION shop FOR TABLE orders",
)
COUNT = "SELECT count(*) FROM orders"


async def publish(plane: Plane) -> None:
    """Enable logical replication, and create a table with a publication."""
    settings = ProjectSettings(enable_logical_replication=True)
    await plane.neon.projects.update(plane.project_id, settings=settings, wait=True)
    assert await execute(plane.uri, *PUBLICATION, "SHOW wal_level") == "logical"


def subscription(plane: Plane) -> str:
    """Return the statement that subscribes another branch to the first one.

    Postgres sets ``options`` itself, so the password names the compute.
    """
    uri = urlsplit(plane.uri)
    password = f"endpoint={plane.project.endpoints[0].id};{uri.password}"
    return (
        "CREATE SUBSCRIPTION shop CONNECTION 'host=127.0.0.1 sslmode=disable dbname=neondb "
        f"user={uri.username} port={uri.port} password={password}' "
        "PUBLICATION shop WITH (copy_data = false)"
    )


async def run(uri: str, statement: str) -> None:
    async with await psycopg.AsyncConnection.connect(uri, autocommit=True) as connection:
        await connection.execute(statement.encode())


async def recvlogical(plane: Plane, *arguments: str) -> Process:
    """Start a program that receives the changes of a slot."""
    installations = await asyncio.to_thread(find_installations)
    program = installations[plane.project.project.pg_version].program("pg_recvlogical")
    options = ["--option=proto_version=1", "--option=publication_names=shop"]
    return await asyncio.create_subprocess_exec(
        program,
        *("--dbname", plane.uri, "--slot", "changes", "--start", "--file", "-"),
        *(*arguments, *options),
        stdout=PIPE,
    )


async def receives(branch: BranchCreated, count: int) -> None:
    """Wait until a branch has this number of rows."""

    async def has_rows() -> bool:
        return bool(await execute(uri_of(branch), COUNT) == count)

    await until(has_rows, every=0.02)


@pytest.mark.fact("logical-replication-1")
async def test_slots_need_logical_replication(plane: Plane) -> None:
    # Before Postgres 16, roles of other projects may not replicate.
    reasons = (psycopg.errors.ObjectNotInPrerequisiteState, psycopg.errors.InsufficientPrivilege)
    with pytest.raises(reasons, match=r"wal_level|replication role"):
        await execute(plane.uri, SLOT)


@pytest.mark.fact("logical-replication-3")
@pytest.mark.control_plane(intervals=BackgroundIntervals(suspend_after=1))
async def test_subscriber_keeps_a_compute_awake(plane: Plane) -> None:
    endpoint_id = plane.project.endpoints[0].id
    await publish(plane)
    await execute(plane.uri, SLOT)
    receiving = await recvlogical(plane, "--no-loop")

    async def is_connected() -> bool:
        nonlocal receiving
        if receiving.returncode is not None:  # a busy machine may take a second to connect
            receiving = await recvlogical(plane, "--no-loop")
        return bool(await execute(plane.uri, "SELECT active FROM pg_replication_slots"))

    await until(is_connected, every=0.05)
    await asyncio.sleep(3)
    compute = await plane.neon.endpoints.get(plane.project_id, endpoint_id)
    assert (compute.current_state, receiving.returncode) == ("active", None)
    receiving.terminate()
    await receiving.wait()
    await plane.neon.endpoints.wait_for(plane.project_id, endpoint_id, "idle", timeout=60)


async def test_pg_recvlogical_receives_changes(plane: Plane) -> None:
    await publish(plane)
    await execute(plane.uri, SLOT)
    end = await execute(
        plane.uri, "INSERT INTO orders VALUES ('book')", "SELECT pg_current_wal_lsn()::text"
    )
    receiving = await recvlogical(plane, "--endpos", end)
    output, _ = await receiving.communicate()
    assert (receiving.returncode, b"book" in output) == (0, True)


@pytest.mark.fact("branch-data-8")
async def test_branch_subscribes_to_another_and_its_own_branches_do_not(plane: Plane) -> None:
    await publish(plane)
    branch = await plane.branch()
    if plane.project.project.pg_version < 16:
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="superuser"):
            await run(uri_of(branch), subscription(plane))
        return
    await run(uri_of(branch), subscription(plane))
    await execute(plane.uri, "INSERT INTO orders VALUES ('book')", "SELECT 1")
    await receives(branch, 1)

    copy = await plane.branch(parent_id=branch.branch.id)
    assert await execute(uri_of(copy), "SELECT count(*) FROM pg_subscription") == 0
    await execute(plane.uri, "INSERT INTO orders VALUES ('pen')", "SELECT 1")
    await receives(branch, 2)
    assert await execute(uri_of(copy), COUNT) == 1

    for action in (plane.neon.endpoints.suspend, plane.neon.endpoints.start):
        await action(plane.project_id, branch.endpoints[0].id, wait=True)
    await execute(plane.uri, "INSERT INTO orders VALUES ('ink')", "SELECT 1")
    await receives(branch, 3)
