"""Planned faults, as a client meets them."""

import asyncio
import json

import aiohttp
import msgspec
import pytest

from neonctl_async.local import Fault, LocalControlPlane
from tests.local.client import Client
from tests.support.until import until

LIST = "GET /projects/{project_id}/operations"


async def branch_count(api: Client, project_id: str) -> int:
    """How many branches a project has."""
    return int((await api.get(f"/projects/{project_id}/branches/count"))["count"])


async def test_a_status_is_answered_so_many_times_on_its_route_only(
    api: Client, project_id: str
) -> None:
    fault = Fault(route=LIST, status=503, times=2, message="busy", headers={"Retry-After": "7"})
    injected = api.control_plane.inject(fault)
    path = f"/projects/{project_id}/operations"
    statuses: list[int] = []
    for _ in range(3):
        await api.get(f"/projects/{project_id}")
        reply = await api.send("GET", path)
        statuses.append(reply.status)
        if reply.status == 503:
            assert (reply.message, reply.headers["Retry-After"]) == ("busy", "7")
    assert statuses == [503, 503, 200]
    assert (injected.fired, api.control_plane.faults) == (2, (injected,))


async def test_a_status_is_answered_at_a_rate_that_the_seed_repeats(api: Client) -> None:
    runs: list[list[int]] = []
    for seed in (1, 1, 2):
        api.control_plane.clear_faults()
        injected = api.control_plane.inject(Fault(status=500, probability=0.5, seed=seed))
        replies = [(await api.send("GET", "/projects")).status for _ in range(40)]
        assert injected.fired == replies.count(500)
        runs.append(replies)
    assert runs[0] == runs[1] != runs[2]
    assert 5 < runs[0].count(500) < 35


async def test_the_first_fault_that_strikes_is_the_only_one(api: Client) -> None:
    first = api.control_plane.inject(Fault(status=500, times=1))
    second = api.control_plane.inject(Fault(status=502, times=1))
    statuses = [(await api.send("GET", "/projects")).status for _ in range(3)]
    assert (statuses, first.fired, second.fired) == ([500, 502, 200], 1, 1)


async def test_a_fault_comes_before_the_key_is_looked_at(api: Client) -> None:
    api.control_plane.inject(Fault(status=503, times=1))
    assert (await api.send("GET", "/projects", key="")).status == 503


@pytest.mark.parametrize(("when", "branches"), [("before", 1), ("after", 2)])
@pytest.mark.parametrize("what", [{"drop": True}, {"status": 500}, {"html": True}])
async def test_the_work_is_left_undone_or_done(
    api: Client, project_id: str, what: dict[str, object], when: str, branches: int
) -> None:
    route = "POST /projects/{project_id}/branches"
    fault = msgspec.convert({"route": route, "times": 1, "when": when} | what, Fault)
    api.control_plane.inject(fault)
    request = api.send("POST", f"/projects/{project_id}/branches", {})
    if fault.drop:
        with pytest.raises(aiohttp.ClientConnectionError):
            await request
        assert api.control_plane.requests[-1].status == 0
    else:
        assert (await request).status == (fault.status or 502)
    assert await branch_count(api, project_id) == branches


async def test_a_body_is_truncated_after_the_work(api: Client, project_id: str) -> None:
    api.control_plane.inject(
        Fault(route="POST /projects/{project_id}/branches", truncate=True, times=1)
    )
    with pytest.raises(aiohttp.ClientPayloadError):
        await api.send("POST", f"/projects/{project_id}/branches", {})
    assert await branch_count(api, project_id) == 2


async def test_html_is_answered_as_a_proxy_would(api: Client) -> None:
    api.control_plane.inject(Fault(html=True, times=1))
    api.control_plane.inject(Fault(html=True, status=504, times=1))
    for status in (502, 504):
        reply = await api.send("GET", "/projects")
        assert (reply.status, reply.content[:6]) == (status, b"<html>")
        assert reply.headers["Content-Type"].startswith("text/html")
        assert "x-neon-ret-request-id" not in reply.headers


async def test_a_route_is_delayed_and_then_answered(api: Client) -> None:
    delayed = api.control_plane.inject(Fault(route="GET /projects", delay=0.05))
    waiting = asyncio.create_task(api.send("GET", "/projects"))
    await until(lambda: delayed.fired == 1)
    assert (await api.send("GET", "/users/me")).status == 200
    assert not waiting.done()
    assert (await waiting).status == 200


async def test_a_delayed_request_is_carried_out_though_its_client_has_gone(api: Client) -> None:
    delayed = api.control_plane.inject(Fault(route="POST /projects", delay=0.05))
    impatient = asyncio.create_task(api.project())
    await until(lambda: delayed.fired == 1)
    impatient.cancel()
    await until(lambda: api.control_plane.requests_served == 1)
    assert api.control_plane.requests[0] == ("POST", "/projects", 201)


@pytest.mark.parametrize(("when", "projects"), [("before", 0), ("after", 1)])
async def test_a_request_that_hangs_ends_when_the_plane_stops(when: str, projects: int) -> None:
    async with LocalControlPlane() as control_plane, Client(control_plane) as api:
        fault = {"route": "POST /projects", "hang": True, "when": when}
        hanging = control_plane.inject(msgspec.convert(fault, Fault))
        request = asyncio.create_task(api.project())

        await until(lambda: hanging.fired == 1)
        while len((await api.get("/projects"))["projects"]) != projects:
            pass
        assert not request.done()
        await control_plane.stop()
        with pytest.raises(aiohttp.ClientConnectionError):
            await request


async def test_faults_come_from_json_as_on_the_command_line() -> None:
    text = json.dumps({"route": "GET /projects", "status": 503, "times": 2})
    assert msgspec.json.decode(text, type=Fault) == Fault(
        route="GET /projects", status=503, times=2
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"route": "/projects"},
        {"route": "GET projects"},
        {"route": "get /projects"},
        {"times": 0},
        {"probability": 1.5},
        {"delay": -1},
        {"unknown": 1},
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(settings: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(settings, Fault)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"status": 199}, "status"),
        ({"status": 600}, "status"),
        ({"status": 503, "headers": {"X": "a\r\nb"}}, "line break"),
        ({"status": 503, "headers": {"X\nY": "a"}}, "line break"),
        ({"html": True, "headers": {"content-type": "text/plain"}}, "Content-Type"),
    ],
)
def test_an_answer_that_cannot_be_sent_is_refused(settings: dict[str, object], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        msgspec.convert(settings, Fault)
