"""The page of the last requests, and the page of the rate limits."""

import asyncio

import aiohttp
import pytest

from control_plane.tests.client import Client
from control_plane.tests.console.visitor import Visitor
from neonctl_local import Fault, RateLimits
from neonctl_local.console.pages import requests
from neonctl_local.console.pages.requests import PAGE_ROWS, shown_seconds


async def test_page_without_requests_shows_a_command(visitor: Visitor) -> None:
    page = await visitor.get("/requests")
    assert "No requests yet" in page.text
    assert "curl -H" in page.text
    assert "/api/v2/projects" in page.text


async def test_page_shows_requests_newest_first(visitor: Visitor, api: Client) -> None:
    await api.get("/projects?limit=1")
    await api.send("POST", "/projects", {"project": 1})
    api.control_plane.inject(Fault(drop=True, route="GET /users/me"))
    with pytest.raises(aiohttp.ClientConnectionError):
        await api.send("GET", "/users/me")
    page = await visitor.get("/requests")
    rows = page.text[page.text.index("API key 2026") :]
    dropped, failed, listed = (rows.index(path) for path in ("/users/me", "POST", "GET /projects"))
    assert dropped < failed < listed
    assert "/users/me Closed fault" in rows
    assert "POST /projects 400" in rows
    assert "first key" in rows
    assert "limit=1" not in page.html
    assert "2 of 700 for First User" in page.text


async def test_requests_are_filtered_by_status_and_method(visitor: Visitor, api: Client) -> None:
    await api.get("/projects")
    await api.send("GET", "/nowhere")
    await api.send("DELETE", "/elsewhere")
    page = await visitor.get("/requests?status=4&method=GET")
    assert "/nowhere" in page.text
    assert "/elsewhere" not in page.text
    assert "/projects 200" not in page.text
    (form,) = [form for form in page.forms if form.action == "/console/requests"]
    assert form.fields == {"status": "4", "method": "GET"}
    nothing = await visitor.get("/requests?status=5")
    assert "No request matches the filter" in nothing.text
    assert "/console/requests" in nothing.links
    unknown = await visitor.get("/requests?status=x&method=TRACE&before=x")
    assert "/elsewhere" in unknown.text


async def test_older_requests_are_on_further_pages(visitor: Visitor, api: Client) -> None:
    for number in range(PAGE_ROWS + 5):
        await api.send("GET", f"/nowhere/{number}", key="")
    first = await visitor.get("/requests?status=4")
    assert "/nowhere/104" in first.text
    assert "/nowhere/5 " in first.text
    assert "/nowhere/4 " not in first.text
    (older,) = [link for link in first.links if "before" in link]
    second = await visitor.get(older.removeprefix("/console"))
    assert "/nowhere/4 " in second.text
    assert "/nowhere/5 " not in second.text
    assert "/console/requests?status=4" in second.links
    assert "data-changes" not in second.html


async def test_visits_of_the_console_are_no_requests(visitor: Visitor, api: Client) -> None:
    for path in ("/requests", "/limits", "/faults"):
        await visitor.get(path)
    assert "No requests yet" in (await visitor.get("/requests")).text
    assert api.control_plane.requests == ()


async def test_key_in_a_path_is_not_shown(visitor: Visitor, api: Client) -> None:
    await api.send("GET", f"/projects/{api.key}")
    assert api.key not in (await visitor.get("/requests")).html


async def test_limits_are_counted_although_they_are_not_enforced(
    visitor: Visitor, api: Client
) -> None:
    for _ in range(3):
        await api.get("/projects")
    page = await visitor.get("/limits")
    assert "not enforced" in page.text
    assert "First User Personal account 3 of 700 3 of 40 GET /projects" in page.text


@pytest.mark.control_plane(rate_limits=RateLimits(account_per_minute=2))
async def test_enforced_limits_are_shown(visitor: Visitor, api: Client) -> None:
    for _ in range(3):
        await api.send("GET", "/projects")
    assert "2 of 2" in (await visitor.get("/limits")).text
    assert "GET /projects 429" in (await visitor.get("/requests?status=429")).text


async def test_open_page_is_notified_of_requests(
    visitor: Visitor, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "_REFRESH_SECONDS", 0.01)
    monkeypatch.setattr("neonctl_local.server.request_history.NOTICE_DELAY", 0.001)
    url = f"{api.control_plane.base_url.removesuffix('/api/v2')}/console/requests/changes"
    async with visitor.http.get(url) as stream, asyncio.timeout(5):
        assert await stream.content.readuntil(b"\n\n") == b"retry: 1000\n\n"
        await api.get("/projects")
        # The second event is not of a request, but of the time that has passed.
        for _ in range(2):
            assert await stream.content.readuntil(b"\n\n") == b"data: changed\n\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.00081, "0.8 ms"),
        (0.00999, "10 ms"),
        (0.0349, "35 ms"),
        (0.9996, "1.00 s"),
        (2.512, "2.51 s"),
    ],
)
def test_durations_of_requests_are_precise(seconds: float, text: str) -> None:
    assert shown_seconds(seconds) == text
