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
from neonctl_async.types import Branch
from neonctl_local import Durations, LocalControlPlane

slow = pytest.mark.control_plane(durations=Durations(default=30.0), lock="none")


@pytest.fixture(autouse=True)
async def project_id(
    control_plane: LocalControlPlane, neon: NeonClient, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The project of the application, which finds it in the environment."""
    project_id = (await neon.projects.create(name="previews")).project.id
    monkeypatch.setenv("NEON_API_KEY", control_plane.api_key)
    monkeypatch.setenv("NEON_API_HOST", control_plane.base_url)
    monkeypatch.setenv("NEON_PROJECT_ID", project_id)
    return project_id


@asynccontextmanager
async def running_app() -> AsyncGenerator[httpx.AsyncClient]:
    """Run the application with its lifespan."""
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://previews") as http,
    ):
        yield http


@pytest.fixture
async def http() -> AsyncGenerator[httpx.AsyncClient]:
    async with running_app() as http:
        yield http


async def create(http: httpx.AsyncClient, name: str = "pr-17") -> dict[str, Any]:
    response = await http.post("/previews", json={"name": name})
    assert response.status_code == 202
    preview: dict[str, Any] = response.json()
    assert response.headers["Location"] == f"/previews/{preview['id']}"
    return preview


async def until_ready(http: httpx.AsyncClient, preview: dict[str, Any]) -> dict[str, Any]:
    while preview["status"] == "pending":
        await asyncio.sleep(0.02)
        preview = (await http.get(f"/previews/{preview['id']}")).json()
    return preview


@pytest.mark.control_plane(durations=Durations(default=0.1))
async def test_preview_is_returned_at_once_and_becomes_ready(
    http: httpx.AsyncClient, neon: NeonClient
) -> None:
    preview = await create(http)
    assert (preview["name"], preview["status"]) == ("pr-17", "pending")
    assert {step["action"] for step in preview["steps"].values()} == {
        "create_branch",
        "start_compute",
    }
    preview = await until_ready(http, preview)
    assert (preview["status"], preview["reason"]) == ("ready", None)
    for step in preview["steps"].values():
        operation = await neon.operations.get(step["project_id"], step["id"])
        assert step["status"] == operation.status == "finished"


async def test_failed_preview_shows_the_reason(
    http: httpx.AsyncClient, control_plane: LocalControlPlane
) -> None:
    await control_plane.fail_next("create_branch", error="out of storage")
    preview = await until_ready(http, await create(http))
    assert preview["status"] == "failed"
    assert "out of storage" in preview["reason"]


@slow
@pytest.mark.parametrize("gone", [False, True])
async def test_deletion_of_a_preview_succeeds_even_if_its_branch_is_gone(
    http: httpx.AsyncClient, neon: NeonClient, project_id: str, gone: bool
) -> None:
    path = f"/previews/{(await create(http))['id']}"
    [preview] = await neon.branches.list(project_id, search="pr-17").collect()
    if gone:
        await neon.branches.delete(project_id, preview.id)
    assert (await http.delete(path)).status_code == 204
    assert await neon.branches.count(project_id, search="pr-17") == 0
    assert (await http.get(path)).status_code == 404
    assert (await http.delete(path)).status_code == 404


@slow
async def test_branches_are_returned_as_json(
    http: httpx.AsyncClient, neon: NeonClient, project_id: str
) -> None:
    await create(http)
    response = await http.get("/branches")
    assert response.status_code == 200
    branches = await neon.branches.list(project_id).collect()
    returned = msgspec.convert(response.json(), list[Branch])
    # The usage of a branch grows from second to second.
    assert [(one.id, one.name) for one in returned] == [(one.id, one.name) for one in branches]
    assert {branch.name for branch in branches} == {"main", "pr-17"}


@slow
async def test_error_of_neon_becomes_a_response(http: httpx.AsyncClient) -> None:
    await create(http)
    response = await http.post("/previews", json={"name": "pr-17"})
    assert response.status_code == 409
    assert "pr-17" in response.json()["detail"]
    assert (await http.post("/previews", json={"name": "x" * 300})).status_code in {400, 422}


@pytest.mark.control_plane(durations=Durations(default=1.0), lock="none")
async def test_log_of_a_shutdown_contains_references_to_resume_waits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "uvicorn.error")
    async with running_app() as http:
        await create(http, "first")
        preview = await create(http, "second")
    messages = [record.getMessage() for record in caplog.records if record.name == "uvicorn.error"]
    assert [line.partition(" ")[0] for line in messages] == ["first", "second"]
    line = messages[1].removeprefix("second is pending; to resume, wait for ")
    references = msgspec.json.decode(line, type=list[OperationRef])
    assert {reference.id for reference in references} == set(preview["steps"])
