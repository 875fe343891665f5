"""A web application that makes a preview branch per request, and waits for it in the background.

    uvicorn --app-dir examples fastapi_app:app
    curl -H 'Content-Type: application/json' -d '{"name": "pr-17"}' localhost:8000/previews

POST answers 202 once the platform has begun; GET tells what has become of it, DELETE removes it.
What is pending when the application ends is in its log, with the references that resume the wait.
Needs fastapi, and uvicorn to serve it. Runs against a local control plane, offline; against the
project NEON_PROJECT_ID of the platform if NEON_API_KEY is set.
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
from neonctl_async.local import LocalControlPlane

PATIENCE = 600.0
"""Seconds that a branch may take to be ready."""
logger = logging.getLogger("uvicorn.error")  # which uvicorn shows


class PreviewRequest(BaseModel):
    """What to make."""

    name: str


class Step(BaseModel):
    """An operation as its waiter saw it last, with the two ids that name it."""

    project_id: str
    id: str
    action: str
    status: str


class Preview(BaseModel):
    """A branch, and how far it has come."""

    id: str
    name: str
    status: Literal["pending", "ready", "failed"] = "pending"
    reason: str | None = None
    steps: dict[str, Step] = {}

    def see(self, operation: Operation) -> None:
        """Take note of an operation."""
        self.steps[operation.id] = Step(
            project_id=operation.project_id,
            id=operation.id,
            action=operation.action,
            status=operation.status,
        )

    def references(self) -> list[OperationRef]:
        """What is needed to wait for it, here or in another process."""
        return [
            OperationRef(project_id=step.project_id, id=step.id) for step in self.steps.values()
        ]


class Previews:
    """The previews of this process, and the tasks that wait for those that are pending."""

    def __init__(self, neon: NeonClient, project_id: str, group: asyncio.TaskGroup) -> None:
        self._neon = neon
        self._project_id = project_id
        self._group = group
        self._waiters: dict[str, asyncio.Task[None]] = {}
        self._previews: dict[str, Preview] = {}

    async def begin(self, name: str) -> Preview:
        """Have a branch made, and a task wait for it."""
        created = await self._neon.branches.create(
            self._project_id, name=name, endpoints=[EndpointSpec(type="read_write")]
        )
        preview = Preview(id=created.branch.id, name=name)
        for operation in created.operations:
            preview.see(operation)
        self._previews[preview.id] = preview
        self._waiters[preview.id] = self._group.create_task(self._wait(preview))
        return preview

    async def _wait(self, preview: Preview) -> None:
        try:
            await self._neon.operations.wait(
                preview.references(), timeout=PATIENCE, on_update=preview.see
            )
        except NeonError as error:
            preview.status, preview.reason = "failed", str(error)
        else:
            preview.status = "ready"

    def find(self, preview_id: str) -> Preview:
        """One of the previews."""
        if preview_id not in self._previews:
            raise HTTPException(status.HTTP_404_NOT_FOUND, "no such preview")
        return self._previews[preview_id]

    async def remove(self, preview: Preview) -> None:
        """Delete a branch; nobody waits for it any longer."""
        with suppress(NotFoundError):  # somebody else was faster
            await self._neon.branches.delete(self._project_id, preview.id)
        self._previews.pop(preview.id, None)
        if waiter := self._waiters.pop(preview.id, None):
            waiter.cancel()

    def stop(self) -> None:
        """End what waits, and tell how to go on with it."""
        for waiter in self._waiters.values():
            waiter.cancel()
        for preview in self._previews.values():
            if preview.status == "pending":
                references = msgspec.json.encode(preview.references()).decode()
                logger.warning("%s is pending: wait for %s", preview.name, references)


@asynccontextmanager
async def connect() -> AsyncGenerator[tuple[NeonClient, str]]:
    """The platform if there is a key for it, else a local control plane; and a project there."""
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
    """One client and one owner of the tasks, for as long as the application runs."""
    async with connect() as (neon, project_id), asyncio.TaskGroup() as group:
        app.state.previews = previews = Previews(neon, project_id, group)
        yield
        previews.stop()


app = FastAPI(lifespan=lifespan)


def all_previews(request: Request) -> Previews:
    """Those of the application that a request is for."""
    previews: Previews = request.app.state.previews
    return previews


def one_preview(preview_id: str, previews: "AllPreviews") -> Preview:
    """The one that a path names."""
    return previews.find(preview_id)


AllPreviews = Annotated[Previews, Depends(all_previews)]
OnePreview = Annotated[Preview, Depends(one_preview)]


@app.exception_handler(NeonError)
async def tell(_: Request, error: NeonError) -> JSONResponse:
    """What the platform refused is told to who asked for it."""
    status_code = status.HTTP_502_BAD_GATEWAY
    if isinstance(error, APIError) and error.status in {400, 409, 422}:  # for the asker to mend
        status_code = error.status
    return JSONResponse({"detail": str(error)}, status_code=status_code)


@app.post("/previews", status_code=status.HTTP_202_ACCEPTED)
async def begin(wish: PreviewRequest, response: Response, previews: AllPreviews) -> Preview:
    """Have a branch made; where to ask for it is in the header Location."""
    preview = await previews.begin(wish.name)
    response.headers["Location"] = f"/previews/{preview.id}"
    return preview


@app.get("/previews/{preview_id}")
async def read(preview: OnePreview) -> Preview:
    """What has become of it."""
    return preview


@app.delete("/previews/{preview_id}", status_code=status.HTTP_204_NO_CONTENT)
async def remove(preview: OnePreview, previews: AllPreviews) -> None:
    """Delete it, ready or not."""
    await previews.remove(preview)
