"""A server with one page, which a test changes, slows down or breaks."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final, Self

from aiohttp import web

from neonctl_local.console.access.headers import secure
from neonctl_local.console.rendering import shared_rendering
from neonctl_local.console.static_files import StaticFiles

PATH: Final = "/console/rows"
TEMPLATE: Final = """{% extends "base.html" %}{% import "components.html" as ui with context %}
{% block title %}{{ rows|length }} rows{% endblock %}
{% block content %}
{{ ui.head("Rows") }}
<form method="post"><label>Outside <input name="outside"></label> {{ ui.button("Send") }}</form>
{% call ui.live("rows") %}
{% call ui.table("table", "Rows", ["Name", ("Status", "col-status"), "Actions"], fixed=true) %}
{% for id, label in rows.items() %}
<tr id="{{ id }}" data-announce="{{ id }}: {{ label }}">
<th scope="row" data-label="Name"><a href="#{{ id }}">{{ id }}</a></th>
<td data-label="Status">{{ ui.status(label) }}</td>
<td data-label="Actions"><form method="post" action="/console/rows/{{ id }}">
<label>Note of {{ id }} <input name="note"></label> {{ ui.button("Save", about=id) }}</form></td>
</tr>
{% endfor %}
{% endcall %}
<p>Created {{ ui.age(created) }}, running for {{ ui.elapsed(created, "0 s") }}</p>
{% endcall %}
<p id="still">{{ rows|length }} at first</p>
{% endblock %}"""


class LivePage:
    """A page with a row for each item of ``rows``, and a stream of its changes.

    A test of a single component has its own ``template``.
    """

    def __init__(self, template: str = TEMPLATE) -> None:
        self.rows: dict[str, str] = {"a": "OK", "b": "In progress"}
        self.now = "2026-11-23T01:02:03Z"
        self.status = 200
        self.delay = 0.0
        self.fetches: list[float] = []
        self.posts: list[dict[str, str]] = []
        self.streams: set[asyncio.Event] = set()
        self.origin = ""
        self.followed = asyncio.Event()
        """Set when the page has opened its stream, and then fetches itself."""
        self._template = shared_rendering().environment.from_string(template)
        self._static = StaticFiles()
        self._closing = False

    def change(self, rows: Mapping[str, str] | None = None) -> None:
        """Replace some rows, and notify the page."""
        self.rows |= rows or {}
        for stream in self.streams:
            stream.set()

    @classmethod
    async def new(cls, template: str = TEMPLATE) -> Self:
        """Read the files in a thread."""
        return await asyncio.to_thread(cls, template)

    @asynccontextmanager
    async def serving(self, port: int = 0) -> AsyncGenerator[int]:
        """Serve the page. Return its port: a restarted server has the same."""
        self._closing = False
        app = web.Application()
        app.router.add_get(PATH, self._page)
        app.router.add_post(PATH, self._post)
        app.router.add_get(f"{PATH}/changes", self._changes)
        app.router.add_get("/console/static/{name}", self._file)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        port = runner.addresses[0][1]
        self.origin = f"http://127.0.0.1:{port}"
        try:
            yield port
        finally:
            self._closing = True
            self.change()
            await runner.cleanup()

    async def _page(self, request: web.Request) -> web.Response:
        if "Console-Refresh" in request.headers:
            self.fetches.append(asyncio.get_running_loop().time())
            self.followed.set()
        rows = dict(self.rows)
        await asyncio.sleep(self.delay)
        text = self._template.render(
            rows=rows, changes=f"{PATH}/changes", created="2026-11-23T01:00:00Z", now=self.now
        )
        page = web.Response(text=text, status=self.status, content_type="text/html")
        secure(page)
        return page

    async def _post(self, request: web.Request) -> web.Response:
        self.posts.append({name: str(value) for name, value in (await request.post()).items()})
        await asyncio.sleep(self.delay)
        return web.Response(text="Posted")

    async def _changes(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        secure(response)
        await response.prepare(request)
        await response.write(b": open\n\n")
        changed = asyncio.Event()
        self.streams.add(changed)
        try:
            while not self._closing:
                await changed.wait()
                changed.clear()
                await response.write(b"data: changed\n\n")
        except ConnectionError:
            pass
        finally:
            self.streams.discard(changed)
        return response

    async def _file(self, request: web.Request) -> web.Response:
        return self._static.respond(request, request.match_info["name"])
