"""A web application that creates a preview branch per request and waits in the background.

    uvicorn --app-dir examples fastapi_app:app
    curl -H 'Content-Type: application/json' -d '{"name": "pr-17"}' localhost:8000/previews

POST responds 202 when Neon has started the creation. GET returns the preview's state, and DELETE
deletes the preview. GET /branches lists the project's branches. When the application stops, it logs
the pending previews with the references that resume the waits. It needs fastapi, and uvicorn as its
server. Without NEON_API_KEY, it uses a local control plane and works offline; with a key, it uses
the project NEON_PROJECT_ID.
"""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Literal

import msgspec
from fastapi import Depends, FastAPI, HTTPException, Request, Response, status
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from neonctl_async import (
    APIError,
    EndpointSpec,
    NeonClient,
    NeonError,
    NotFoundError,
    Operation,
    OperationRef,
)
from neonctl_async.types import Branch
from neonctl_local import LocalControlPlane

TIMEOUT = 600.0
"""How long a branch may take to become ready, in seconds."""
logger = logging.getLogger("uvicorn.error")  # uvicorn shows this logger


class PreviewRequest(BaseModel):
    """The preview to create."""

    name: str


class Step(BaseModel):
    """The last known state of an operation, with the two ids that identify it."""

    project_id: str
    id: str
    action: str
    status: str


class Preview(BaseModel):
    """A branch and its progress."""

    id: str
    name: str
    status: Literal["pending", "ready", "failed"] = "pending"
    reason: str | None = None
    steps: dict[str, Step] = {}

    def update(self, operation: Operation) -> None:
        """Record the state of an operation."""
        self.steps[operation.id] = Step(
            project_id=operation.project_id,
            id=operation.id,
            action=operation.action,
            status=operation.status,
        )

    def references(self) -> list[OperationRef]:
        """Return the references with which any process can wait for the branch."""
        return [
            OperationRef(project_id=step.project_id, id=step.id) for step in self.steps.values()
        ]


class Previews:
    """The previews of this process, and the tasks that wait for pending ones."""

    def __init__(self, neon: NeonClient, project_id: str, group: asyncio.TaskGroup) -> None:
        self._neon = neon
        self._project_id = project_id
        self._group = group
        self._waiters: dict[str, asyncio.Task[None]] = {}
        self._previews: dict[str, Preview] = {}

    async def start(self, name: str) -> Preview:
        """Create a branch, and start a task that waits for it."""
        created = await self._neon.branches.create(
            self._project_id, name=name, endpoints=[EndpointSpec(type="read_write")]
        )
        preview = Preview(id=created.branch.id, name=name)
        for operation in created.operations:
            preview.update(operation)
        self._previews[preview.id] = preview
        self._waiters[preview.id] = self._group.create_task(self._wait(preview))
        return preview

    async def _wait(self, preview: Preview) -> None:
        try:
            await self._neon.operations.wait(
                preview.references(), timeout=TIMEOUT, on_update=preview.update
            )
        except NeonError as error:
            preview.status, preview.reason = "failed", str(error)
        else:
            preview.status = "ready"

    def find(self, preview_id: str) -> Preview:
        """Return a preview. Respond 404 if there is none."""
        if preview_id not in self._previews:
            raise HTTPException(status.HTTP_404_NOT_FOUND, "no such preview")
        return self._previews[preview_id]

    async def remove(self, preview: Preview) -> None:
        """Delete a branch and cancel its wait."""
        with suppress(NotFoundError):  # already deleted
            await self._neon.branches.delete(self._project_id, preview.id)
        self._previews.pop(preview.id, None)
        if waiter := self._waiters.pop(preview.id, None):
            waiter.cancel()

    async def branches(self) -> list[Branch]:
        """Return all branches of the project."""
        return await self._neon.branches.list(self._project_id).collect()

    def stop(self) -> None:
        """Cancel all waits, and log how to resume them."""
        for waiter in self._waiters.values():
            waiter.cancel()
        for preview in self._previews.values():
            if preview.status == "pending":
                references = msgspec.json.encode(preview.references()).decode()
                logger.warning("%s is pending; to resume, wait for %s", preview.name, references)


@asynccontextmanager
async def connect() -> AsyncGenerator[tuple[NeonClient, str]]:
    """Connect to Neon if NEON_API_KEY is set, otherwise to a local control plane."""
    if os.environ.get("NEON_API_KEY"):
        async with NeonClient() as neon:
            yield neon, os.environ.get("NEON_PROJECT_ID") or sys.exit("set NEON_PROJECT_ID as well")
    else:
        async with (
            LocalControlPlane() as control_plane,
            NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon,
        ):
            yield neon, (await neon.projects.create(name="previews", wait=True)).project.id


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    """Keep one client and one task group open while the application runs."""
    async with connect() as (neon, project_id), asyncio.TaskGroup() as group:
        app.state.previews = previews = Previews(neon, project_id, group)
        yield
        previews.stop()


app = FastAPI(lifespan=lifespan)


def all_previews(request: Request) -> Previews:
    """Return the previews of the application."""
    previews: Previews = request.app.state.previews
    return previews


def one_preview(preview_id: str, previews: "AllPreviews") -> Preview:
    """Return the preview that the path names."""
    return previews.find(preview_id)


AllPreviews = Annotated[Previews, Depends(all_previews)]
OnePreview = Annotated[Preview, Depends(one_preview)]


@app.exception_handler(NeonError)
async def respond(_: Request, error: NeonError) -> JSONResponse:
    """Turn a Neon error into a response."""
    status_code = status.HTTP_502_BAD_GATEWAY
    if isinstance(error, APIError) and error.status in {400, 409, 422}:  # caused by the request
        status_code = error.status
    return JSONResponse({"detail": str(error)}, status_code=status_code)


@app.post("/previews", status_code=status.HTTP_202_ACCEPTED)
async def create(wanted: PreviewRequest, response: Response, previews: AllPreviews) -> Preview:
    """Create a preview; the Location header contains its path."""
    preview = await previews.start(wanted.name)
    response.headers["Location"] = f"/previews/{preview.id}"
    return preview


@app.get("/previews/{preview_id}")
async def read(preview: OnePreview) -> Preview:
    """Return the preview."""
    return preview


@app.get("/branches")
async def branches(previews: AllPreviews) -> list[Branch]:
    """Return the branches of the project, as Neon describes them."""
    return await previews.branches()


@app.delete("/previews/{preview_id}", status_code=status.HTTP_204_NO_CONTENT)
async def remove(preview: OnePreview, previews: AllPreviews) -> None:
    """Delete the preview, ready or not."""
    await previews.remove(preview)
