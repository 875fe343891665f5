"""Injected faults, as a client receives them."""

import asyncio
import json
from collections import Counter

import aiohttp
import msgspec
import pytest

from control_plane.tests.client import Client
from neonctl_local import Fault
from neonctl_local.server.faults import Faults, preset
from tests.support.until import until

LIST = "GET /projects/{project_id}/operations"


async def branch_count(api: Client, project_id: str) -> int:
    return int((await api.get(f"/projects/{project_id}/branches/count"))["count"])


async def test_status_is_sent_a_number_of_times_on_its_route_only(
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


@pytest.mark.parametrize(
    ("fields", "failed"),
    [
        ({"after": 2}, [3, 4, 5, 6, 7]),
        ({"every": 3}, [1, 4, 7]),
        ({"after": 1, "every": 2, "times": 2}, [2, 4]),
    ],
)
async def test_after_and_every_count_the_requests_to_the_route(
    api: Client, project_id: str, fields: dict[str, int], failed: list[int]
) -> None:
    api.control_plane.inject(msgspec.convert({"route": LIST, "status": 503, **fields}, Fault))
    statuses: list[int] = []
    for _ in range(7):
        await api.get(f"/projects/{project_id}")
        statuses.append((await api.send("GET", f"/projects/{project_id}/operations")).status)
    assert [number for number, status in enumerate(statuses, 1) if status == 503] == failed


@pytest.mark.parametrize("by", ["id", "name"])
async def test_fault_of_a_branch_leaves_the_others_alone(
    api: Client, project_id: str, by: str
) -> None:
    branches = [(await api.branch(project_id, name=name))["branch"] for name in ("one", "two")]
    api.control_plane.inject(Fault(branch=branches[0][by], status=503))
    statuses = [
        (await api.send("GET", f"/projects/{project_id}/branches{path}")).status
        for path in ("", f"/{branches[0]['id']}", f"/{branches[1]['id']}", "/br-none-1")
    ]
    assert statuses == [200, 503, 200, 404]


def test_fault_ends_after_its_time() -> None:
    now = 100.0
    faults = Faults(lambda: now)
    faults.inject(Fault(status=429, seconds=60))
    now = 159.9
    assert faults.next_for(LIST) is not None
    now = 160.0
    assert (faults.next_for(LIST), faults.injected) == (None, ())


@pytest.mark.parametrize(
    ("name", "statuses", "slow"),
    [
        ("rate-limited", {429: 40}, 0),
        ("one-in-twenty", {503: 2}, 0),
        ("slow-friday", {}, 4),
    ],
)
def test_presets_do_what_their_names_say(name: str, statuses: dict[int, int], slow: int) -> None:
    faults = Faults()
    for fault in preset(name):
        faults.inject(fault)
    fired = [one for _ in range(40) if (one := faults.next_for(LIST)) is not None]
    assert Counter(one.status for one in fired if one.status) == statuses
    assert sum(one.delay == 20 for one in fired) == slow


async def test_seed_repeats_the_random_faults(api: Client) -> None:
    runs: list[list[int]] = []
    for seed in (1, 1, 2):
        api.control_plane.clear_faults()
        injected = api.control_plane.inject(Fault(status=500, probability=0.5, seed=seed))
        replies = [(await api.send("GET", "/projects")).status for _ in range(40)]
        assert injected.fired == replies.count(500)
        runs.append(replies)
    assert runs[0] == runs[1] != runs[2]
    assert 5 < runs[0].count(500) < 35


async def test_only_the_first_matching_fault_fires(api: Client) -> None:
    first = api.control_plane.inject(Fault(status=500, times=1))
    second = api.control_plane.inject(Fault(status=502, times=1))
    statuses = [(await api.send("GET", "/projects")).status for _ in range(3)]
    assert (statuses, first.fired, second.fired) == ([500, 502, 200], 1, 1)


def test_removed_fault_leaves_an_equal_one_active() -> None:
    faults = Faults()
    one, other = (faults.inject(Fault(status=500)) for _ in range(2))
    assert faults.remove(one.number)
    assert not faults.remove(one.number)
    assert faults.injected == (other,)


async def test_fault_fires_before_the_key_is_checked(api: Client) -> None:
    api.control_plane.inject(Fault(status=503, times=1))
    assert (await api.send("GET", "/projects", key="")).status == 503


@pytest.mark.parametrize(("when", "branches"), [("before", 1), ("after", 2)])
@pytest.mark.parametrize("what", [{"drop": True}, {"status": 500}, {"html": True}])
async def test_when_decides_whether_the_request_is_handled(
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


async def test_truncated_response_follows_a_handled_request(api: Client, project_id: str) -> None:
    route = "POST /projects/{project_id}/branches"
    api.control_plane.inject(Fault(route=route, truncate=True, times=1))
    with pytest.raises(aiohttp.ClientPayloadError):
        await api.send("POST", f"/projects/{project_id}/branches", {})
    assert await branch_count(api, project_id) == 2


async def test_html_fault_sends_a_page_like_a_proxy(api: Client) -> None:
    api.control_plane.inject(Fault(html=True, times=1))
    api.control_plane.inject(Fault(html=True, status=504, times=1))
    for status in (502, 504):
        reply = await api.send("GET", "/projects")
        assert (reply.status, reply.content[:6]) == (status, b"<html>")
        assert reply.headers["Content-Type"].startswith("text/html")
        assert "x-neon-ret-request-id" not in reply.headers


async def test_delayed_request_gets_its_response_later(api: Client) -> None:
    # On a busy machine, the other request may take long.
    delayed = api.control_plane.inject(Fault(route="GET /projects", delay=2))
    waiting = asyncio.create_task(api.send("GET", "/projects"))
    await until(lambda: delayed.fired == 1)
    assert (await api.send("GET", "/users/me")).status == 200
    assert not waiting.done()
    assert (await waiting).status == 200


async def test_delayed_request_is_handled_after_its_client_disconnected(api: Client) -> None:
    delayed = api.control_plane.inject(Fault(route="POST /projects", delay=0.05))
    impatient = asyncio.create_task(api.project())
    await until(lambda: delayed.fired == 1)
    impatient.cancel()
    await until(lambda: api.control_plane.requests_served == 1)
    assert api.control_plane.requests[0] == ("POST", "/projects", 201)


@pytest.mark.parametrize(("when", "projects"), [("before", 0), ("after", 1)])
async def test_hanging_request_is_closed_when_the_server_stops(
    api: Client, when: str, projects: int
) -> None:
    fault = {"route": "POST /projects", "hang": True, "when": when}
    hanging = api.control_plane.inject(msgspec.convert(fault, Fault))
    request = asyncio.create_task(api.project())

    await until(lambda: hanging.fired == 1)
    while len((await api.get("/projects"))["projects"]) != projects:
        pass
    assert not request.done()
    await api.control_plane.stop()
    with pytest.raises(aiohttp.ClientConnectionError):
        await request


async def test_fault_is_decoded_from_json() -> None:
    fields = {"route": "GET /projects", "status": 503, "times": 2}
    expected = Fault(route="GET /projects", status=503, times=2)
    assert msgspec.json.decode(json.dumps(fields), type=Fault) == expected


@pytest.mark.parametrize(
    "settings",
    [
        {"route": "/projects"},
        {"route": "GET projects"},
        {"route": "get /projects"},
        {"times": 0},
        {"probability": 1.5},
        {"after": -1},
        {"every": 0},
        {"delay": -1},
        {"seconds": 0},
        {"branch": ""},
        {"branch": "main", "route": "GET /projects"},
        {"unknown": 1},
    ],
)
def test_invalid_fault_is_rejected(settings: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(settings, Fault)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"status": 199}, "status"),
        ({"status": 600}, "status"),
        ({"status": 503, "headers": {"X": "a\r\nb"}}, "line break"),
        ({"status": 503, "headers": {"X": "a\0b"}}, "control character"),
        ({"status": 503, "headers": {"X\nY": "a"}}, "names of letters"),
        ({"status": 503, "headers": {"X Y": "a"}}, "names of letters"),
        ({"status": 503, "headers": {"X:Y": "a"}}, "names of letters"),
        ({"status": 503, "headers": {"": "a"}}, "names of letters"),
        ({"status": 503, "headers": {"content-length": "3"}}, "Content-Length"),
        ({"status": 503, "headers": {"Transfer-Encoding": "chunked"}}, "Transfer-Encoding"),
        ({"html": True, "headers": {"content-type": "text/plain"}}, "Content-Type"),
    ],
)
def test_fault_with_an_unsendable_response_is_rejected(
    settings: dict[str, object], word: str
) -> None:
    with pytest.raises(ValueError, match=word):
        msgspec.convert(settings, Fault)
