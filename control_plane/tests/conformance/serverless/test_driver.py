"""Neon's serverless driver, ``@neondatabase/serverless``, and packages that are built on it."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from neonctl_local import PostgresSettings
from tests.contract.description import FOLDER
from tests.contract.node import copy_programs, run
from tests.support.databases import databases
from tests.support.pages import ROOT, TEXTS, code_blocks
from tests.support.postgres import skip_without_postgres

pytestmark = [pytest.mark.conformance, pytest.mark.postgres]


@pytest.fixture(autouse=True)
def postgres() -> None:
    """Skip the tests on a machine without Postgres."""
    skip_without_postgres()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the programs, in which Node.js finds their packages."""
    for programs in (Path(__file__).parent, ROOT / "examples" / "serverless"):
        copy_programs(programs, tmp_path)
    return tmp_path


@asynccontextmanager
async def environment(**settings: Any) -> AsyncGenerator[dict[str, str]]:
    """Run a control plane, and return the variables with the URIs of a database."""
    async with databases(**settings) as (control_plane, neon):
        project = await neon.projects.create(name="test", wait=True)
        yield {
            "DATABASE_URL": project.connection_uri.psycopg,
            "SERVERLESS_URL": project.connection_uri.serverless,
            "NEON_API_HOST": control_plane.base_url,
        }


@pytest.mark.parametrize("tls", [False, True])
async def test_driver_returns_the_same_over_http_websocket_and_port(
    folder: Path, tls: bool
) -> None:
    async with environment(postgres=PostgresSettings(tls=tls)) as variables:
        found = await run(folder, "--import", "./local.mjs", "driver.mjs", **variables)
    assert found["websocket"] == found["port"]
    assert found["http"] == found["port"]
    assert found["others"] == {
        "transaction": [1, "repeatable read"],
        "notification": "payload",
        "notice": "look",
        "session": 7,
        "parallel": True,
        "pipelineConnect": 8,
    }
    succeeded = [name for name, outcome in found["port"].items() if "error" not in outcome]
    assert len(succeeded) >= len(found["port"]) - 5  # four have errors, and some builds have no XML


def test_page_names_every_option_and_header_of_the_driver() -> None:
    package = FOLDER / "node_modules" / "@neondatabase" / "serverless"
    types = (package / "index.d.ts").read_text()
    interfaces = ("NeonConfig", "HTTPQueryOptions", "HTTPTransactionOptions")
    bodies = [
        re.findall(rf"^export declare interface {name}\b.*?^}}", types, re.MULTILINE | re.DOTALL)[0]
        for name in interfaces
    ]
    options = {
        name for body in bodies for name in re.findall(r"^    (\w+)\??:", body, re.MULTILINE)
    }
    headers = set(re.findall(r'"(Neon-[A-Za-z-]+)"', (package / "index.mjs").read_text()))
    page = TEXTS["docs/local-databases.md"]
    table = page[page.index("| option or header ") :].partition("\n\n")[0]
    named = [
        set(re.findall(r"`([\w-]+)`", line.split(" | ")[0])) for line in table.splitlines()[2:]
    ]
    assert set().union(*named) == options | headers


async def test_lines_of_the_page_aim_the_driver_at_the_server(folder: Path) -> None:
    [(_, lines)] = code_blocks(TEXTS["docs/local-databases.md"], 'javascript title="app.mjs"')
    query = (
        'import { Pool, neon } from "@neondatabase/serverless";\n'
        "const connectionString = process.env.SERVERLESS_URL;\n"
        "const [overHttp] = await neon(connectionString)`SELECT 1 AS n`;\n"
        "const pool = new Pool({ connectionString });\n"
        'const { rows } = await pool.query("SELECT 2 AS n");\n'
        "await pool.end();\n"
        "console.log(JSON.stringify([overHttp.n, rows[0].n]));\n"
    )
    async with environment() as variables:
        address = urlsplit(variables["NEON_API_HOST"]).netloc
        program = lines.replace("127.0.0.1:8080", address) + query
        await asyncio.to_thread((folder / "page.mjs").write_text, program)
        assert await run(folder, "page.mjs", **variables) == [1, 2]


async def test_orms_work_on_the_driver(folder: Path) -> None:
    async with environment() as variables:
        found = await run(folder, "--import", "./local.mjs", "orms.mjs", **variables)
    milk = [{"id": 1, "body": "milk"}, {"id": 2, "body": None}]
    bread = {"id": 3, "body": "bread"}
    assert (found["found"], found["batch"], found["transaction"]) == (milk, milk, [bread])
    assert found["rows"] == found["httpRows"] == [[3, "bread"]]
