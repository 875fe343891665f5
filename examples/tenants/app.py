"""The web application. ``python -m tenants`` starts it and sets its environment.

    URL=http://127.0.0.1:8000/tenants/acme
    curl -X PUT $URL
    curl -H 'Content-Type: application/json' -d '{"text": "hello"}' $URL/notes
    curl $URL/notes
    curl -X DELETE $URL

The application does not authenticate callers. Before you use it, make sure that only a tenant's own
users can call the tenant's paths.
"""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Path, Request, Response, status
from pydantic import BaseModel, Field

from neonctl_async import NeonClient, RateBudget
from tenants.branches import TenantBranches
from tenants.failures import add_handlers
from tenants.pools import TenantPools

router = APIRouter(prefix="/tenants")


class Note(BaseModel):
    """A note of a tenant."""

    text: str = Field(pattern=r"^[^\x00]*$")  # Postgres cannot store NUL


class Services:
    """The branches and connections that all requests of a worker share."""

    def __init__(self, branches: TenantBranches, pools: TenantPools) -> None:
        self.branches = branches
        self.pools = pools


def services_of(request: Request) -> Services:
    """Return the services of the worker."""
    services: Services = request.app.state.services
    return services


TenantName = Annotated[str, Path(pattern="^[a-z][a-z0-9-]{1,39}$")]
Worker = Annotated[Services, Depends(services_of)]


@router.get("")
async def list_tenants(worker: Worker) -> list[str]:
    """Return the names of all tenants."""
    return await worker.branches.tenants()


@router.put("/{tenant}")
async def sign_up(tenant: TenantName, worker: Worker, response: Response) -> dict[str, str]:
    """Create a tenant's database (201), or confirm that it already exists (200)."""
    created = await worker.branches.ensure(tenant)
    async with worker.pools.connection(tenant):  # creates the tables
        pass
    response.status_code = status.HTTP_201_CREATED if created else status.HTTP_200_OK
    return {"tenant": tenant}


@router.delete("/{tenant}", status_code=status.HTTP_204_NO_CONTENT)
async def sign_off(tenant: TenantName, worker: Worker) -> None:
    """Delete a tenant's database. Neon can recover the branch for seven days."""
    await worker.branches.delete(tenant)
    worker.pools.discard(tenant)


@router.get("/{tenant}/notes")
async def read_notes(tenant: TenantName, worker: Worker) -> list[str]:
    """Return a tenant's notes."""
    async with worker.pools.connection(tenant) as connection:
        rows = await connection.fetch("SELECT text FROM notes ORDER BY id")
    return [row["text"] for row in rows]


@router.post("/{tenant}/notes", status_code=status.HTTP_201_CREATED)
async def add_note(tenant: TenantName, note: Note, worker: Worker) -> Note:
    """Store a note."""
    async with worker.pools.connection(tenant) as connection:
        await connection.execute("INSERT INTO notes (text) VALUES ($1)", note.text)
    return note


def budget() -> RateBudget:
    """Return the shared rate budget that the environment configures, or a private one."""
    url = os.environ.get("NEON_RATE_BUDGET", "off")
    return RateBudget() if url == "off" else RateBudget.shared(url)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    """Keep one client and one set of pools open while the worker runs."""
    async with NeonClient(budget=budget()) as neon:
        branches = TenantBranches(neon, os.environ["NEON_PROJECT_ID"])
        async with TenantPools(branches.connection_uri) as pools:
            app.state.services = Services(branches, pools)
            yield


def create_app() -> FastAPI:
    """Return a new application. Each worker creates its own."""
    app = FastAPI(title="Tenants", lifespan=lifespan)
    app.include_router(router)
    add_handlers(app)
    return app
