"""Reads of operations that are about to settle: their responses wait for that."""

import asyncio

import pytest

from control_plane.tests.client import Client, Reply, serve
from neonctl_local import Durations, ManualClock
from neonctl_local.events import first_of
from neonctl_local.server import responses


def statuses(reply: Reply) -> set[str]:
    """Return the statuses of a list of operations, or of one operation."""
    records = reply.json.get("operations") or [reply.json["operation"]]
    return {record["status"] for record in records}


async def test_read_of_operations_that_are_about_to_settle_shows_their_end() -> None:
    async with serve(durations=Durations(default=0.08)) as api:
        created = await api.request("POST", "/projects", {"project": {}})
        operations = f"/projects/{created['project']['id']}/operations"
        last = created["operations"][-1]
        assert last["status"] != "finished"  # a call that starts work never waits
        assert statuses(await api.send("GET", f"{operations}/{last['id']}")) == {"finished"}
        assert statuses(await api.send("GET", operations)) == {"finished"}


async def test_read_of_other_operations_does_not_wait(
    api: Client, project_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait(*_events: asyncio.Event, seconds: float) -> None:
        raise AssertionError(f"waited for {seconds} s")

    monkeypatch.setattr(responses, "first_of", wait)
    created = await api.branch(project_id)
    operations = f"/projects/{project_id}/operations"
    assert "running" in statuses(await api.send("GET", operations))
    one = f"{operations}/{created['operations'][0]['id']}"
    assert statuses(await api.send("GET", one)) == {"running"}
    assert (await api.send("GET", f"/projects/{project_id}")).status == 200


async def test_operations_that_start_during_a_read_do_not_prolong_it(
    api: Client, project_id: str, clock: ManualClock
) -> None:
    created = await api.branch(project_id)
    operation = f"/projects/{project_id}/operations/{created['operations'][0]['id']}"
    clock.advance(0.9)
    read = asyncio.create_task(api.send("GET", operation))
    await asyncio.sleep(0.02)
    await api.branch(project_id)
    clock.advance(0.2)
    assert statuses(await read) == {"finished"}


async def test_read_waits_a_limited_time_for_a_clock_that_stands_still(
    api: Client, project_id: str, clock: ManualClock
) -> None:
    created = await api.branch(project_id)
    operation = f"/projects/{project_id}/operations/{created['operations'][0]['id']}"
    clock.advance(0.9)
    assert statuses(await api.send("GET", operation)) == {"running"}


async def test_stop_of_the_server_ends_a_read(
    api: Client, project_id: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await api.branch(project_id)
    operation = f"/projects/{project_id}/operations/{created['operations'][0]['id']}"
    has_arrived = asyncio.Event()

    async def wait(*events: asyncio.Event, seconds: float) -> None:
        has_arrived.set()
        await first_of(*events, seconds=seconds)

    monkeypatch.setattr(responses, "first_of", wait)
    clock.advance(0.9)
    read = asyncio.create_task(api.send("GET", operation))
    await has_arrived.wait()
    await api.control_plane.stop()
    assert statuses(await read) == {"running"}


@pytest.mark.postgres
async def test_clients_learn_that_reads_of_new_work_of_postgres_are_held() -> None:
    async with serve(postgres=True) as api:
        assert "Neonctl-Holds-Reads" in (await api.send("GET", "/projects")).headers


async def test_emulated_work_is_read_when_the_client_expects_its_end(api: Client) -> None:
    assert "Neonctl-Holds-Reads" not in (await api.send("GET", "/projects")).headers


@pytest.mark.postgres
async def test_read_of_new_work_of_postgres_shows_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve(postgres=True) as api:
        monkeypatch.setattr(responses, "LONGEST_WAIT", 60.0)
        created = await api.request("POST", "/projects", {"project": {}})
        operations = f"/projects/{created['project']['id']}/operations"
        assert statuses(await api.send("GET", operations)) == {"finished"}
        monkeypatch.setattr(responses, "LONGEST_WAIT", 0.01)
        await api.branch(created["project"]["id"])
        assert "running" in statuses(await api.send("GET", operations))
