"""The example of a web application that creates a preview branch per request."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
from fastapi_app import app

from neonctl_async import NeonClient, OperationRef
from neonctl_async.local import Durations, LocalControlPlane

SLOW = Durations(default=30.0)


@asynccontextmanager
async def served(
    monkeypatch: pytest.MonkeyPatch, durations: Durations
) -> AsyncGenerator[tuple[httpx.AsyncClient, LocalControlPlane, NeonClient]]:
    """Run the application with its lifespan, on a project of a running control plane."""
    async with (
        LocalControlPlane(durations=durations) as control_plane,
        NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon,
    ):
        project = (await neon.projects.create(name="previews")).project
        monkeypatch.setenv("NEON_API_KEY", control_plane.api_key)
        monkeypatch.setenv("NEON_API_HOST", control_plane.base_url)
        monkeypatch.setenv("NEON_PROJECT_ID", project.id)
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://previews") as http,
        ):
            yield http, control_plane, neon


async def create(http: httpx.AsyncClient, name: str = "pr-17") -> dict[str, Any]:
    response = await http.post("/previews", json={"name": name})
    assert response.status_code == 202
    preview: dict[str, Any] = response.json()
    assert response.headers["Location"] == f"/previews/{preview['id']}"
    return preview


async def settle(http: httpx.AsyncClient, preview: dict[str, Any]) -> dict[str, Any]:
    while preview["status"] == "pending":
        await asyncio.sleep(0.02)
        preview = (await http.get(f"/previews/{preview['id']}")).json()
    return preview


async def test_preview_is_returned_at_once_and_becomes_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with served(monkeypatch, Durations(default=0.1)) as (http, _, neon):
        preview = await create(http)
        assert (preview["name"], preview["status"]) == ("pr-17", "pending")
        assert {step["action"] for step in preview["steps"].values()} == {
            "create_branch",
            "start_compute",
        }
        preview = await settle(http, preview)
        assert (preview["status"], preview["reason"]) == ("ready", None)
        for step in preview["steps"].values():
            operation = await neon.operations.get(step["project_id"], step["id"])
            assert step["status"] == operation.status == "finished"


async def test_failed_preview_shows_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(monkeypatch, Durations(default=0.05)) as (http, control_plane, _):
        await control_plane.fail_next("create_branch", error="out of storage")
        preview = await settle(http, await create(http))
        assert preview["status"] == "failed"
        assert "out of storage" in preview["reason"]


@pytest.mark.parametrize("gone", [False, True])
async def test_deletion_of_a_preview_succeeds_even_if_its_branch_is_gone(
    monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    async with served(monkeypatch, SLOW) as (http, _, neon):
        path = f"/previews/{(await create(http))['id']}"
        [project] = await neon.projects.list().collect()
        [preview] = await neon.branches.list(project.id, search="pr-17").collect()
        if gone:
            await neon.branches.delete(project.id, preview.id)
        assert (await http.delete(path)).status_code == 204
        assert await neon.branches.count(project.id, search="pr-17") == 0
        assert (await http.get(path)).status_code == 404
        assert (await http.delete(path)).status_code == 404


async def test_error_of_neon_becomes_a_response(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(monkeypatch, SLOW) as (http, _plane, _):
        await create(http)
        response = await http.post("/previews", json={"name": "pr-17"})
        assert response.status_code == 409
        assert "pr-17" in response.json()["detail"]
        assert (await http.post("/previews", json={"name": "x" * 300})).status_code in {400, 422}


async def test_log_of_a_shutdown_contains_references_to_resume_waits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "uvicorn.error")
    async with served(monkeypatch, Durations(default=1.0)) as (http, _, _):
        await create(http, "first")
        preview = await create(http, "second")
    messages = [record.getMessage() for record in caplog.records if record.name == "uvicorn.error"]
    assert [line.partition(" ")[0] for line in messages] == ["first", "second"]
    line = messages[1].removeprefix("second is pending; to resume, wait for ")
    references = msgspec.json.decode(line, type=list[OperationRef])
    assert {reference.id for reference in references} == set(preview["steps"])
