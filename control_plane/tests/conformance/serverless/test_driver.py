"""Neon's serverless driver, ``@neondatabase/serverless``, and packages that are built on it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from neonctl_local import PostgresSettings
from tests.contract.node import copy_programs, run
from tests.support.databases import databases
from tests.support.pages import ROOT
from tests.support.postgres import skip_without_postgres

pytestmark = [pytest.mark.conformance, pytest.mark.postgres, pytest.mark.timeout(120)]


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
    }
    succeeded = [name for name, outcome in found["port"].items() if "error" not in outcome]
    assert len(succeeded) >= len(found["port"]) - 5  # four have errors, and some builds have no XML


async def test_orms_work_on_the_driver(folder: Path) -> None:
    async with environment() as variables:
        found = await run(folder, "--import", "./local.mjs", "orms.mjs", **variables)
    milk = [{"id": 1, "body": "milk"}, {"id": 2, "body": None}]
    bread = {"id": 3, "body": "bread"}
    assert (found["found"], found["batch"], found["transaction"]) == (milk, milk, [bread])
    assert found["rows"] == found["httpRows"] == [[3, "bread"]]
