"""The start of the console: its link, its packages, and a server without it."""

import asyncio
import importlib.util
import subprocess
import sys
from importlib.machinery import ModuleSpec

import pytest
from yarl import URL

from control_plane.tests.client import Client
from control_plane.tests.console.visitor import Visitor, visiting
from neonctl_local import LocalControlPlane
from neonctl_local.console.access.headers import HEADERS

START = """
import asyncio, sys
from neonctl_local import LocalControlPlane

async def main():
    async with LocalControlPlane() as control_plane:
        assert control_plane.console_url

asyncio.run(main())
"""
HELP = """
import sys
from neonctl_local.arguments import new_parser

new_parser("local").format_help()
assert "aiohttp" not in sys.modules
"""
PRINT = """
names = ("jinja2", "markupsafe", "neonctl_local.console.pages")
print([name for name in names if name in sys.modules])
"""


async def test_each_link_is_new_and_has_the_address_of_the_server(
    control_plane: LocalControlPlane,
) -> None:
    first, second = URL(control_plane.console_url), URL(control_plane.console_url)
    assert first.with_query(None) == second.with_query(None)
    assert first.origin() == URL(control_plane.base_url).origin()
    assert first.path == "/console/sign-in"
    assert first.query["token"] != second.query["token"]


async def test_link_of_an_exposed_server_has_its_public_name() -> None:
    async with LocalControlPlane(host="0.0.0.0", expose="plane") as control_plane:
        assert control_plane.console_url.startswith("http://plane:")


async def test_server_that_is_not_running_has_no_link() -> None:
    control_plane = LocalControlPlane()
    with pytest.raises(RuntimeError, match="not running: start it first"):
        _ = control_plane.console_url
    async with control_plane:
        assert control_plane.console_url
    with pytest.raises(RuntimeError, match="not running: start it first"):
        _ = control_plane.console_url


@pytest.mark.control_plane(console=False)
async def test_console_can_be_switched_off(api: Client, control_plane: LocalControlPlane) -> None:
    with pytest.raises(RuntimeError, match="switched off: pass console=True"):
        _ = control_plane.console_url
    async with Visitor(control_plane) as visitor:
        for path in ("", "/sign-in", "/static/console.css"):
            page = await visitor.get(path)
            assert (page.status, page.headers["Content-Type"]) == (401, "application/json")
    api.base_url = str(URL(api.base_url).origin())
    assert (await api.send("GET", "/console")).status == 404


async def test_missing_package_is_named(
    control_plane: LocalControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec

    def find(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "jinja2" else find_spec(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    with pytest.raises(RuntimeError, match=r"needs Jinja2: pip install 'neonctl-local\[console\]'"):
        _ = control_plane.console_url
    monkeypatch.setitem(sys.modules, "neonctl_local.console.site", None)
    async with Visitor(control_plane) as visitor:
        for path, headers in (("", {}), ("/sign-in", {}), ("", {"Host": "evil.example"})):
            page = await visitor.get(path, headers=headers)
            assert (page.status, "pip install" in page.html) == (501, True)
            assert HEADERS.items() <= dict(page.headers).items()


@pytest.mark.process
async def test_start_and_help_import_no_page_and_no_template_engine() -> None:
    for code in (START, HELP):
        command = [sys.executable, "-c", code + PRINT]
        run = await asyncio.to_thread(
            subprocess.run, command, capture_output=True, text=True, check=True
        )
        assert run.stdout == "[]\n"


async def test_first_requests_at_the_same_time_load_the_pages_once(
    control_plane: LocalControlPlane,
) -> None:
    async with visiting(control_plane) as visitor:
        pages = await asyncio.gather(*(visitor.get("/sign-in") for _ in range(5)))
    assert {page.status for page in pages} == {200}
