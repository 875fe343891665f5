"""Long polls of operations: responses that wait until the operations have settled."""

import asyncio

import pytest

from control_plane.tests.client import Client, Reply, serve
from neonctl_local import Durations, ManualClock
from neonctl_local.events import first_of
from neonctl_local.server import long_polls

LONG = {"Prefer": "wait=5"}


def statuses(reply: Reply) -> list[str]:
    """Return the statuses of a list of operations, or of one operation."""
    records = reply.json.get("operations") or [reply.json["operation"]]
    return [record["status"] for record in records]


async def test_response_comes_when_the_operations_have_finished() -> None:
    async with serve(durations=Durations(default=0.1)) as api:
        created = await api.request("POST", "/projects", {"project": {}})
        operations = f"/projects/{created['project']['id']}/operations"
        assert "running" in statuses(await api.send("GET", operations))
        last = f"{operations}/{created['operations'][-1]['id']}"
        assert statuses(await api.send("GET", last, headers=LONG)) == ["finished"]
        assert {*statuses(await api.send("GET", operations, headers=LONG))} == {"finished"}


async def test_response_is_delayed_by_no_more_than_the_requested_time(
    api: Client, project_id: str
) -> None:
    await api.branch(project_id)
    reply = await api.send(
        "GET", f"/projects/{project_id}/operations", headers={"Prefer": "wait=0.01"}
    )
    assert reply.headers["Accept-Prefer"] == "wait=5"
    assert "running" in statuses(reply)


@pytest.mark.parametrize("prefer", ["wait", "wait=-1", "wait=nan", "wait=1e9", "respond-async"])
async def test_other_preferences_delay_nothing(api: Client, project_id: str, prefer: str) -> None:
    await api.branch(project_id)
    path = f"/projects/{project_id}/operations"
    assert "running" in statuses(await api.send("GET", path, headers={"Prefer": prefer}))


async def test_only_operations_are_waited_for(api: Client, project_id: str) -> None:
    await api.branch(project_id)
    assert (await api.send("GET", f"/projects/{project_id}", headers=LONG)).status == 200


async def test_operations_that_start_during_a_long_poll_do_not_prolong_it(
    api: Client, project_id: str, clock: ManualClock
) -> None:
    created = await api.branch(project_id)
    operation = f"/projects/{project_id}/operations/{created['operations'][0]['id']}"
    poll = asyncio.create_task(api.send("GET", operation, headers=LONG))
    clock.advance(0.9)
    await api.branch(project_id)
    clock.advance(0.2)
    await api.branch(project_id)
    assert statuses(await poll) == ["finished"]


async def test_stop_of_the_server_ends_long_polls(
    api: Client, project_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await api.branch(project_id)
    operation = f"/projects/{project_id}/operations/{created['operations'][0]['id']}"
    has_arrived = asyncio.Event()

    async def wait(*events: asyncio.Event, seconds: float) -> None:
        has_arrived.set()
        await first_of(*events, seconds=seconds)

    monkeypatch.setattr(long_polls, "first_of", wait)
    poll = asyncio.create_task(api.send("GET", operation, headers=LONG))
    await has_arrived.wait()
    await api.control_plane.stop()
    assert statuses(await poll) == ["running"]
