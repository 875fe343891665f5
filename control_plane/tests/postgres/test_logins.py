"""What is known of the logins of a server, whether it runs or not."""

import asyncio
import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from neonctl_local.postgres.admin import Address, connect
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.configuration import Applied, Desired, RoleSpec, make_verifier, verifies
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.logins import (
    Password,
    ServerLogin,
    StoredPassword,
    StoredPasswords,
    password_at_start,
    read_passwords,
)
from neonctl_local.postgres.template import password_file
from tests.support.clusters import DESIRED, PASSWORD, execute, fetch, session
from tests.support.until import until

pytestmark = pytest.mark.postgres


async def test_password_of_a_stopped_server_is_known(clusters: Clusters, main: str) -> None:
    assert await clusters.password(main, "alice", DESIRED) is None
    await clusters.stop(main)
    found = await clusters.password(main, "alice", DESIRED)
    assert found is not None
    assert verifies(found.verifier, PASSWORD)
    assert await clusters.password(main, "nobody", DESIRED) == Password(None)
    await clusters.start(main, DESIRED)
    assert await clusters.password(main, "alice", DESIRED) is None


async def test_copy_has_the_passwords_of_its_source(clusters: Clusters, main: str) -> None:
    await execute(clusters, main, "ALTER ROLE alice PASSWORD 'changed'")
    await clusters.stop(main)
    await clusters.copy(main, "br-copy")
    found = await clusters.password("br-copy", "alice", DESIRED)
    assert found is not None
    assert verifies(found.verifier, "changed")


async def test_password_is_unknown_after_a_kill(clusters: Clusters, main: str) -> None:
    crashed = asyncio.Event()
    clusters.on_crash = lambda _id, _reason: crashed.set()
    file = await data_of(clusters) / "postmaster.pid"
    os.kill(int((await asyncio.to_thread(file.read_text)).split()[0]), signal.SIGKILL)
    await crashed.wait()
    assert await clusters.password(main, "alice", DESIRED) is None
    await clusters.start(main, DESIRED)
    await clusters.stop(main)
    assert await clusters.password(main, "alice", DESIRED) is not None


async def test_password_is_unknown_if_a_change_was_not_finished(
    clusters: Clusters, main: str
) -> None:
    async with session(clusters, main) as changing:
        await changing.execute("BEGIN; ALTER ROLE alice PASSWORD 'other'")
        await clusters.stop(main)
    assert await clusters.password(main, "alice", DESIRED) is None
    await clusters.start(main, DESIRED)


async def data_of(clusters: Clusters) -> Path:
    """Return the data directory of the only server that runs."""
    [file] = await asyncio.to_thread(lambda: [*clusters.root.glob("**/postmaster.pid")])
    return file.parent


async def record(clusters: Clusters, id: str, version: tuple[int, int]) -> StoredPasswords:
    """Read the passwords as a stop does."""
    socket = clusters.socket(id)
    assert socket is not None
    address = Address(socket.parent, int(socket.suffix.removeprefix(".")))
    file = password_file(await data_of(clusters))
    password = (await asyncio.to_thread(file.read_text)).strip()
    async with connect(address, password, version) as administrator:
        return await read_passwords(administrator)


async def test_change_between_the_record_and_the_stop_is_noticed(
    clusters: Clusters, main: str, installation: Installation
) -> None:
    data = await data_of(clusters)
    before = await record(clusters, main, installation.version)
    await execute(clusters, main, "CREATE TABLE t (id int)", "INSERT INTO t VALUES (1)")
    same = await record(clusters, main, installation.version)
    await execute(clusters, main, "ALTER ROLE alice PASSWORD 'late'")
    after = await record(clusters, main, installation.version)
    assert not await asyncio.to_thread(after.are_those_of, data)  # the server still runs
    await clusters.stop(main)
    found = [await asyncio.to_thread(each.are_those_of, data) for each in (before, same, after)]
    assert found == [False, False, True]


async def test_answers_are_newer_than_their_questions(clusters: Clusters, main: str) -> None:
    async def keep_asking() -> None:
        while True:
            await clusters.login(main, "alice", "app")
            await asyncio.sleep(0)

    asking = asyncio.create_task(keep_asking())
    try:
        seen: list[ServerLogin | None] = []
        slowest = 0.0
        for number in range(20):
            old = f"p{number - 1}" if number else PASSWORD
            await until(partial(has_lock, clusters, main, old))
            started = time.monotonic()
            await execute(clusters, main, f"ALTER ROLE alice PASSWORD 'p{number}'", password=old)
            slowest = max(slowest, time.monotonic() - started)
            login = await clusters.login(main, "alice", "app")
            assert login is not None
            assert verifies(login.verifier, f"p{number}")
            assert login not in seen
            seen.append(login)
    finally:
        asking.cancel()
    assert slowest < 5  # a change waits for the lock


async def has_lock(clusters: Clusters, id: str, password: str = PASSWORD) -> bool:
    """Return whether the tables are locked, so that logins are known without a question."""
    locks = "SELECT 1 FROM pg_locks WHERE relation = 'pg_authid'::regclass AND mode = 'ShareLock'"
    return bool(await fetch(clusters, id, f"{locks} AND granted", password=password))


async def test_question_after_a_restart_is_answered(clusters: Clusters, main: str) -> None:
    assert await clusters.login(main, "alice", "app") is not None
    assert await clusters.login(main, "nobody", "app") is None
    await clusters.stop(main)
    with pytest.raises(ClusterError, match="is not running"):
        await clusters.login(main, "alice", "app")
    await clusters.start(main, DESIRED)
    assert await clusters.login(main, "alice", "app") is not None


async def test_unused_session_is_closed(clusters: Clusters, main: str) -> None:
    await clusters.login(main, "alice", "app")
    assert await has_lock(clusters, main)
    await until(partial(_has_no_lock, clusters, main))


async def _has_no_lock(clusters: Clusters, id: str) -> bool:
    return not await has_lock(clusters, id)


STORED = {"alice": StoredPassword(make_verifier("stored"), None)}
APPLIED = Applied(roles={"alice": make_verifier("applied")})


def test_start_without_changes_keeps_what_sql_stored() -> None:
    desired = Desired([RoleSpec("alice", "applied")])
    assert password_at_start("alice", STORED, APPLIED, desired).verifier == STORED["alice"].verifier


def test_start_stores_the_password_of_the_api() -> None:
    for applied in (APPLIED, Applied()):
        found = password_at_start("alice", STORED, applied, Desired([RoleSpec("alice", "new")]))
        assert verifies(found.verifier, "new")
        assert found.text == "new"


def test_dropped_role_has_no_password() -> None:
    kept = Desired([RoleSpec("alice", "applied")])
    assert password_at_start("alice", {}, APPLIED, kept) == Password(None)  # with SQL
    assert password_at_start("alice", STORED, APPLIED, Desired()) == Password(None)  # with the API


def test_role_that_only_sql_knows_keeps_its_password() -> None:
    found = password_at_start("alice", STORED, Applied(), Desired())
    assert found == Password(STORED["alice"].verifier)


def test_new_password_keeps_the_end_of_the_old_one() -> None:
    expired = {"alice": StoredPassword(make_verifier("stored"), time.time() - 1)}
    for password in ("new", "applied"):
        desired = Desired([RoleSpec("alice", password)])
        assert password_at_start("alice", expired, APPLIED, desired) == Password(None)
