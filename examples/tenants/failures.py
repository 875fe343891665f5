"""Turns the errors of Neon and of the databases into HTTP responses.

After a 503, the client should repeat its request, which is safe for signing up and signing off.
The log shows the details of an error; the response does not.
"""

import logging

import asyncpg
from fastapi import FastAPI, Request, status
from fastapi.responses import JSONResponse

from neonctl_async import (
    APIError,
    ConflictError,
    NeonError,
    TransportError,
    WaitTimeoutError,
)
from tenants.branches import UnknownTenantError
from tenants.pools import DatabaseUnavailableError

RETRY_SECONDS = 5
TRANSIENT = {408, 423, 429, 500, 502, 503, 504}
logger = logging.getLogger("uvicorn.error")  # uvicorn shows this logger


def add_handlers(app: FastAPI) -> None:
    """Add all error handlers to an application."""
    app.add_exception_handler(UnknownTenantError, unknown)
    app.add_exception_handler(NeonError, neon_failed)
    for kind in (
        DatabaseUnavailableError,
        asyncpg.PostgresConnectionError,
        asyncpg.InterfaceError,
        asyncpg.InternalClientError,  # the connection was used while the server closed it
        asyncpg.AdminShutdownError,
    ):
        app.add_exception_handler(kind, database_failed)


async def unknown(_: Request, error: Exception) -> JSONResponse:
    """Respond that there is no such tenant."""
    return JSONResponse({"detail": f"no tenant {error}"}, status.HTTP_404_NOT_FOUND)


async def neon_failed(_: Request, error: Exception) -> JSONResponse:
    """Respond to a Neon error."""
    logger.warning("Neon: %s", error)
    if isinstance(error, ConflictError):  # e.g. somebody else's branch has this name
        return JSONResponse({"detail": "the name is in use"}, status.HTTP_409_CONFLICT)
    if isinstance(error, TransportError | WaitTimeoutError):
        return again(RETRY_SECONDS)
    if isinstance(error, APIError) and error.status in TRANSIENT:
        return again(error.retry_after or RETRY_SECONDS)
    return JSONResponse({"detail": "Neon refused the request"}, status.HTTP_502_BAD_GATEWAY)


async def database_failed(_: Request, error: Exception) -> JSONResponse:
    """Respond that a tenant's database is unavailable."""
    logger.warning("database: %r", error.__cause__ or error)
    return again(RETRY_SECONDS)


def again(seconds: float) -> JSONResponse:
    """Respond that the client should repeat the request after ``seconds``."""
    return JSONResponse(
        {"detail": "try again"},
        status.HTTP_503_SERVICE_UNAVAILABLE,
        headers={"Retry-After": str(max(1, round(seconds)))},
    )
