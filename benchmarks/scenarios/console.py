"""The console with 1,000 branches and 100,000 operations: pages, idle streams, and changes.

The server runs in its own process, with a data file.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TypeVar

import aiohttp
import msgspec
from yarl import URL

from benchmarks.harness.results import OURS, Row, Target, make_row
from benchmarks.harness.run_size import RunSize
from benchmarks.servers.large_control_plane import LargeControlPlane, Sizes, large_control_plane
from neonctl_async.models.branches import BranchCreated, BranchesPage
from neonctl_async.models.projects import ProjectsPage

T = TypeVar("T")

PAGE_LIMIT, CHANGE_LIMIT = 50, 1000
"""The limits in milliseconds: of a page, and until a page shows a change."""
STREAMS, IDLE_LIMIT = 50, 5
"""The number of open pages, and the limit of their cost in percent of a core."""

PAGES: Mapping[str, str] = {
    "projects": "",
    "dashboard": "/projects/{project}",
    "operations with all filters": (
        "/projects/{project}/operations?branch={branch}&action=delete_tenant&status=OK"
    ),
}


class Person:
    """A person who is signed in to the console, and has a key of the API."""

    def __init__(self, server: LargeControlPlane, http: aiohttp.ClientSession) -> None:
        self.server = server
        self.http = http
        self._console = URL(server.console_url).origin() / "console"
        self._api = {"Authorization": f"Bearer {server.api_key}"}

    async def page(self, path: str) -> str:
        """Return a page of the console."""
        async with self.http.get(f"{self._console}{path}") as response:
            response.raise_for_status()
            return await response.text()

    async def request(self, method: str, path: str, kind: type[T], body: object = None) -> T:
        """Send a request to the API, and return its response."""
        url = self.server.base_url + path
        async with self.http.request(method, url, json=body, headers=self._api) as response:
            response.raise_for_status()
            return msgspec.json.decode(await response.read(), type=kind)

    @asynccontextmanager
    async def stream(self, project_id: str) -> AsyncGenerator[aiohttp.StreamReader]:
        """Open the stream of changes of a project."""
        url = f"{self._console}/projects/{project_id}/changes"
        timeout = aiohttp.ClientTimeout(total=None)
        async with self.http.get(url, timeout=timeout) as response:
            response.raise_for_status()
            await response.content.readuntil(b"\n\n")
            yield response.content


async def run(size: RunSize) -> list[Row]:
    """Measure all pages in rounds, then idle streams, then changes beside them."""
    sizes = Sizes(
        keys=size.pick(full=10_000, quick=1_000),
        projects=size.pick(full=1_000, quick=100),
        operations=size.pick(full=100_000, quick=10_000),
        branches=size.pick(full=1_000, quick=100),
    )
    cookies = aiohttp.CookieJar(unsafe=True)
    connections = aiohttp.TCPConnector(limit=2 * STREAMS)
    with tempfile.TemporaryDirectory() as folder:
        async with (
            large_control_plane(Path(folder) / "data.db", sizes) as server,
            aiohttp.ClientSession(cookie_jar=cookies, connector=connections) as http,
        ):
            async with http.get(server.console_url) as response:
                response.raise_for_status()
            person = Person(server, http)
            rows = await measure_pages(person, size.pick(full=50, quick=3))
            rows.append(await measure_idle(person, size.pick(full=60, quick=3)))
            rows.append(await measure_changes(person, size.pick(full=20, quick=3)))
    return rows


async def measure_pages(person: Person, rounds: int) -> list[Row]:
    """Return a row for each page. Each round opens all of them."""
    project = person.server.project_id
    branches = await person.request("GET", f"/projects/{project}/branches?limit=500", BranchesPage)
    names = {"project": project, "branch": branches.branches[-1].id}
    times: dict[str, list[float]] = {name: [] for name in PAGES}
    for _ in range(rounds):
        for name, path in PAGES.items():
            started = time.perf_counter()
            await person.page(path.format_map(names))
            times[name].append((time.perf_counter() - started) * 1000)
    return [
        make_row(name, "page", "ms", {OURS: found}, targets=[Target(PAGE_LIMIT)])
        for name, found in times.items()
    ]


async def measure_idle(person: Person, seconds: int) -> Row:
    """Return the CPU time of the server while pages of many projects are open and unused."""
    async with AsyncExitStack() as stack:
        for project in await _projects(person):
            await stack.enter_async_context(person.stream(project))
        await asyncio.sleep(1)
        before = _cpu_seconds(person.server.pid)
        await asyncio.sleep(seconds)
        share = (_cpu_seconds(person.server.pid) - before) / seconds * 100
    name = f"{STREAMS} open pages, idle"
    return make_row(name, "server", "% of a core", {OURS: [share]}, targets=[Target(IDLE_LIMIT)])


async def measure_changes(person: Person, rounds: int) -> Row:
    """Return the time from a response of the API until an open page has the new content.

    The pages of other projects are open too.
    """
    project = person.server.project_id
    times: list[float] = []
    async with AsyncExitStack() as stack:
        for other in (await _projects(person))[1:]:
            await stack.enter_async_context(person.stream(other))
        events = await stack.enter_async_context(person.stream(project))
        for number in range(rounds):
            body = {"branch": {"name": f"changed {number}"}}
            await person.request("POST", f"/projects/{project}/branches", BranchCreated, body)
            started = time.perf_counter()
            while f"changed {number}<" not in await person.page(f"/projects/{project}/operations"):
                await events.readuntil(b"data: changed\n\n")
            times.append((time.perf_counter() - started) * 1000)
            await asyncio.sleep(2.5)  # the operation finishes
    name = "a new operation is on an open page"
    return make_row(name, "delay", "ms", {OURS: times}, targets=[Target(CHANGE_LIMIT)])


async def _projects(person: Person) -> list[str]:
    """Return the ids of as many projects as there are streams."""
    found = await person.request("GET", f"/projects?limit={STREAMS}", ProjectsPage)
    return [project.id for project in found.projects]


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process. The name of its program may contain spaces."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
