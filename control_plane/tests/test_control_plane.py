"""The start and stop of the server, and the data that its file keeps."""

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from control_plane.tests.client import Client, serve
from neonctl_local import Fault, LocalControlPlane, ManualClock
from neonctl_local.server.names import public_host
from neonctl_local.server.tenants.state import TenantState
from neonctl_local.settings import Rules
from neonctl_local.storage.database import Database
from neonctl_local.storage.transactions import Transaction


async def test_server_starts_in_one_task_and_stops_in_another() -> None:
    control_plane = LocalControlPlane()
    await asyncio.create_task(control_plane.start())
    async with Client(control_plane) as api:
        assert (await api.send("GET", "/projects")).status == 200
    await asyncio.create_task(control_plane.stop())
    await control_plane.stop()


async def test_restart_in_memory_starts_empty() -> None:
    control_plane = LocalControlPlane()
    keys: list[str] = []
    for _ in range(2):
        async with control_plane:
            keys.append(control_plane.api_key)
            with pytest.raises(RuntimeError, match="already running"):
                await control_plane.start()
    assert keys[0] != keys[1]


async def test_stopped_server_raises_a_clear_error() -> None:
    control_plane = LocalControlPlane()
    with pytest.raises(RuntimeError, match="not started"):
        _ = control_plane.api_key
    with pytest.raises(RuntimeError, match="not running"):
        await control_plane.fail_next("create_branch")
    async with control_plane:
        pass
    with pytest.raises(RuntimeError, match="not running"):
        _ = control_plane.base_url
    assert (list(control_plane.requests), control_plane.requests_served) == ([], 0)


async def test_stop_leaves_no_thread_task_or_socket() -> None:
    threads, tasks = threading.active_count(), asyncio.all_tasks()
    async with LocalControlPlane() as control_plane, aiohttp.ClientSession() as session:
        async with session.get(control_plane.base_url):
            pass
        url = control_plane.base_url
        await control_plane.stop()
        assert (threading.active_count(), asyncio.all_tasks()) == (threads, tasks)
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get(url)


async def test_server_responds_at_localhost() -> None:
    async with LocalControlPlane(host="localhost") as control_plane, Client(control_plane) as api:
        assert control_plane.base_url.startswith("http://localhost:")
        assert (await api.send("GET", "/projects")).status == 200


async def test_open_connection_does_not_delay_the_stop() -> None:
    async with LocalControlPlane() as control_plane:
        host, port = "127.0.0.1", int(control_plane.base_url.split(":")[2].split("/")[0])
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET /api/v2/projects HTTP/1.1\r\nHost: x\r\n")
        await writer.drain()
        async with asyncio.timeout(5):
            await control_plane.stop()
            assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


async def test_failed_start_on_a_taken_port_leaves_nothing_open() -> None:
    threads = threading.active_count()
    async with LocalControlPlane() as control_plane:
        port = int(control_plane.base_url.split(":")[2].split("/")[0])
        second = LocalControlPlane(port=port)
        with pytest.raises(OSError, match="address already in use"):
            await second.start()
    assert threading.active_count() == threads


async def test_file_keeps_all_data_and_operations_continue(
    tmp_path: Path, clock: ManualClock
) -> None:
    data = tmp_path / "control-plane.db"
    async with serve(data=data, clock=clock) as api:
        key, org_id = api.key, api.control_plane.org_id
        project_id = (await api.project())["project"]["id"]
        await api.control_plane.fail_next("create_branch")
        statuses = [op["status"] for op in await api.operations(project_id)]
        assert statuses == ["running", "scheduling"]
    clock.advance(1.5)
    async with serve(key, data=data, clock=clock) as api:
        assert api.control_plane.org_id == org_id
        with pytest.raises(RuntimeError, match="first start"):
            _ = api.control_plane.api_key
        statuses = [op["status"] for op in await api.operations(project_id)]
        assert statuses == ["finished", "running"]
        await api.branch(project_id)
        clock.advance(5)
        assert (await api.operations(project_id))[-1]["status"] == "failed"
        assert await api.get("/users/me", key=await api.control_plane.create_api_key("another"))


async def test_key_is_stored_as_a_hash(tmp_path: Path) -> None:
    data = tmp_path / "control-plane.db"
    async with LocalControlPlane(data=data) as control_plane:
        token = control_plane.api_key
    files = await asyncio.to_thread(lambda: list(tmp_path.iterdir()))
    stored = b"".join([await asyncio.to_thread(file.read_bytes) for file in files])
    assert b"first key" in stored
    assert token.encode() not in stored
    assert token.rpartition("_")[2].encode() not in stored


async def test_status_does_not_go_back_with_the_clock(clock: ManualClock) -> None:
    early = clock()
    moments = [early]
    async with serve(clock=lambda: moments[-1]) as api:
        project_id = (await api.project())["project"]["id"]
        clock.advance(60)
        moments.append(clock())
        assert (await api.operations(project_id))[0]["status"] == "finished"
        moments.append(early)
        assert (await api.operations(project_id))[0]["status"] == "finished"


def test_file_of_another_version_is_rejected_and_not_changed(tmp_path: Path) -> None:
    data = tmp_path / "control-plane.db"
    with closing(sqlite3.connect(data)) as connection:
        connection.execute("CREATE TABLE projects (id TEXT)")
    with pytest.raises(
        RuntimeError, match=r"control-plane\.db: another program, or an unreleased version"
    ):
        asyncio.run(LocalControlPlane(data=data).start())
    with closing(sqlite3.connect(data)) as connection:
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("projects",)]


async def test_file_is_used_by_one_process_at_a_time(tmp_path: Path) -> None:
    data = tmp_path / "control-plane.db"
    async with LocalControlPlane(data=data):
        with pytest.raises(RuntimeError, match=r"control-plane\.db: this process \(\d+\) uses it"):
            await LocalControlPlane(data=data).start()


async def test_failed_start_does_not_consume_the_first_key(tmp_path: Path) -> None:
    data = tmp_path / "control-plane.db"
    async with LocalControlPlane() as other:
        taken = URL(other.base_url).port
        assert taken is not None
        with pytest.raises(OSError, match="address already in use"):
            await LocalControlPlane(data=data, port=taken).start()
    async with LocalControlPlane(data=data) as control_plane:
        assert control_plane.api_key


async def test_status_does_not_go_back_if_the_clock_is_set_back_between_two_starts(
    tmp_path: Path,
) -> None:
    data, clock = tmp_path / "control-plane.db", ManualClock()
    async with serve(data=data, clock=clock) as api:
        project_id = (await api.project())["project"]["id"]
        clock.advance(10)
        before = (await api.get(f"/projects/{project_id}/operations"))["operations"]
    async with serve(api.key, data=data, clock=ManualClock()) as api:
        after = (await api.get(f"/projects/{project_id}/operations"))["operations"]
    assert {operation["status"] for operation in before} == {"finished"}
    assert after == before


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"action": "create_brunch"}, "one of apply_config"),
        ({"action": "create_branch", "status": "finished"}, "status is 'finished'"),
        ({"action": "create_branch", "times": 0}, "times is 0"),
        ({"action": "create_branch", "times": 10**20}, "expected 1 to"),
        ({"action": "create_branch", "after": 10**20}, "expected 0 to"),
        ({"action": "create_branch", "retry_after": 1e300}, "expected 0 to"),
        ({"action": "create_branch", "retry_after": -1.0}, "retry_after is -1.0"),
        ({"action": "create_branch", "show_retry_at": False}, "pass retry_after"),
    ],
)
async def test_impossible_failure_is_not_planned(plan: dict[str, Any], said: str) -> None:
    async with LocalControlPlane() as control_plane:
        with pytest.raises(ValueError, match=said):
            await control_plane.fail_next(**plan)


async def test_fault_on_an_unknown_route_is_rejected() -> None:
    control_plane = LocalControlPlane()
    with pytest.raises(ValueError, match=r"did you mean 'GET /projects/\{project_id\}/operations'"):
        control_plane.inject(Fault(route="GET /projects/{id}/operations", status=503))


def test_other_addresses_than_loopback_need_expose(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ValueError, match="not a loopback address"):
        LocalControlPlane(host="0.0.0.0")
    LocalControlPlane(host="0.0.0.0", expose=True)
    assert "sent unencrypted" in caplog.text


@pytest.mark.parametrize(
    ("host", "expose", "shown"),
    [
        ("127.0.0.1", False, "127.0.0.1"),
        ("::1", True, "::1"),
        ("0.0.0.0", True, "127.0.0.1"),
        ("::", True, "::1"),
        ("192.0.2.7", True, "192.0.2.7"),
        ("0.0.0.0", "control-plane", "control-plane"),
        ("0.0.0.0", "192.0.2.7", "192.0.2.7"),
        ("127.0.0.1", "localhost", "localhost"),
    ],
)
def test_base_url_has_a_host_to_connect_to(host: str, expose: bool | str, shown: str) -> None:
    assert public_host(host, expose=expose) == shown


def test_empty_directory_of_postgres_is_not_the_current_directory() -> None:
    with pytest.raises(ValueError, match="postgres is '': expected True, False or a directory"):
        LocalControlPlane(postgres="")


@pytest.mark.parametrize("expose", ["", "http://control-plane", "control-plane:8080", "*", "a b"])
def test_name_to_expose_must_be_a_host(expose: str) -> None:
    with pytest.raises(ValueError, match="expected the host name or IP address"):
        LocalControlPlane(host="0.0.0.0", expose=expose)


def test_name_to_expose_needs_an_address_that_others_reach() -> None:
    with pytest.raises(ValueError, match=r"listens on 127\.0\.0\.1 only: pass the host 0\.0\.0\.0"):
        LocalControlPlane(expose="control-plane")


@pytest.mark.parametrize(("settings", "level"), [({}, 1), ({"durable": True}, 2)])
async def test_durable_control_plane_waits_for_the_disk(
    tmp_path: Path, settings: dict[str, bool], level: int
) -> None:
    state = TenantState(ManualClock(), Rules(), None, tmp_path / "data.db", **settings)
    await state.database.open()
    try:
        assert await state.database.run(Transaction.number, "PRAGMA synchronous") == level
    finally:
        await state.database.close()


async def test_transaction_that_sqlite_ended_reports_the_first_error() -> None:
    def fail(tx: Transaction) -> None:
        tx.execute("ROLLBACK")  # as SQLite does after some errors, for example on a full disk
        raise ValueError("the first error")

    database = Database(None, ManualClock(), Rules())
    await database.open()
    try:
        with pytest.raises(ValueError, match="the first error"):
            await database.run(fail)
        assert await database.run(Transaction.number, "SELECT 1") == 1
    finally:
        await database.close()
