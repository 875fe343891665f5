"""Databases of a branch."""

import builtins
from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from neonctl_async.errors import LookupFailedError
from neonctl_async.models.databases import (
    Database,
    DatabaseDeleted,
    DatabaseResponse,
    DatabasesResponse,
    DatabaseUpdated,
)
from neonctl_async.resources.base import Resource, drop_unset
from neonctl_async.waiting.waiter import Wait

_DATABASES = "/projects/{project_id}/branches/{branch_id}/databases"
_DATABASE = f"{_DATABASES}/{{database_name}}"


class DatabaseCalls(Resource):
    """The API's database endpoints."""

    async def list(self, project_id: str, branch_id: str) -> builtins.list[Database]:
        """Return the databases of a branch."""
        response = await self._send("GET", _DATABASES, DatabasesResponse, project_id, branch_id)
        return response.databases

    async def get(self, project_id: str, branch_id: str, database_name: str) -> Database:
        """Return a database."""
        response = await self._send(
            "GET", _DATABASE, DatabaseResponse, project_id, branch_id, database_name
        )
        return response.database

    async def create(
        self,
        project_id: str,
        branch_id: str,
        *,
        name: str,
        owner_name: str,
        wait: Wait = False,
    ) -> DatabaseUpdated:
        """Create a database owned by the role ``owner_name``."""
        body = {"database": drop_unset(name=name, owner_name=owner_name)}
        return await self._start(
            "POST", _DATABASES, DatabaseUpdated, project_id, branch_id, body=body, wait=wait
        )

    async def update(
        self,
        project_id: str,
        branch_id: str,
        database_name: str,
        *,
        name: str | UnsetType = UNSET,
        owner_name: str | UnsetType = UNSET,
        wait: Wait = False,
    ) -> DatabaseUpdated:
        """Change the name or the owner of a database."""
        body = {"database": drop_unset(name=name, owner_name=owner_name)}
        return await self._start(
            "PATCH",
            _DATABASE,
            DatabaseUpdated,
            project_id,
            branch_id,
            database_name,
            body=body,
            wait=wait,
        )

    async def delete(
        self, project_id: str, branch_id: str, database_name: str, *, wait: Wait = False
    ) -> DatabaseDeleted:
        """Delete a database."""
        return await self._start(
            "DELETE", _DATABASE, DatabaseDeleted, project_id, branch_id, database_name, wait=wait
        )


def choose_database(branch_id: str, databases: Sequence[Database], name: str | None) -> Database:
    """Return the database with this name. Without a name, return the only database.

    Raises LookupFailedError, listing the names, if there is no such database, and ValueError if
    there is more than one.
    """
    if not databases:
        raise LookupFailedError(f"branch {branch_id} has no database: create one first")
    names = ", ".join(sorted(database.name for database in databases))
    found = [database for database in databases if name in {None, database.name}]
    if not found:
        raise LookupFailedError(f"branch {branch_id} has no database {name!r}: it has {names}")
    if len(found) > 1:
        raise ValueError(f"branch {branch_id} has {len(found)} databases, {names}: choose one")
    return found[0]
