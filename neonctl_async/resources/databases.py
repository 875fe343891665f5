"""Databases of a branch."""

import builtins

from msgspec import UNSET, UnsetType

from neonctl_async.models.databases import (
    Database,
    DatabaseDeleted,
    DatabaseOperations,
    DatabaseResponse,
    DatabasesResponse,
)
from neonctl_async.resources.base import Resource, given
from neonctl_async.transport.protocol import request

_DATABASES = "/projects/{project_id}/branches/{branch_id}/databases"
_DATABASE = f"{_DATABASES}/{{database_name}}"


class Databases(Resource):
    """Databases of a branch. ``wait`` as in :meth:`Branches.create`."""

    async def list(self, project_id: str, branch_id: str) -> builtins.list[Database]:
        """The databases of a branch."""
        answer = await self._caller.send(
            request("GET", _DATABASES, DatabasesResponse, project_id, branch_id)
        )
        return answer.databases

    async def get(self, project_id: str, branch_id: str, database_name: str) -> Database:
        """One database."""
        answer = await self._caller.send(
            request("GET", _DATABASE, DatabaseResponse, project_id, branch_id, database_name)
        )
        return answer.database

    async def create(
        self,
        project_id: str,
        branch_id: str,
        *,
        name: str,
        owner_name: str,
        wait: bool | float = False,
    ) -> DatabaseOperations:
        """Create a database that belongs to the role ``owner_name``."""
        return await self._caller.start(
            request(
                "POST",
                _DATABASES,
                DatabaseOperations,
                project_id,
                branch_id,
                body={"database": given(name=name, owner_name=owner_name)},
            ),
            wait=wait,
        )

    async def update(
        self,
        project_id: str,
        branch_id: str,
        database_name: str,
        *,
        name: str | UnsetType = UNSET,
        owner_name: str | UnsetType = UNSET,
        wait: bool | float = False,
    ) -> DatabaseOperations:
        """Give a database another name or another owner."""
        return await self._caller.start(
            request(
                "PATCH",
                _DATABASE,
                DatabaseOperations,
                project_id,
                branch_id,
                database_name,
                body={"database": given(name=name, owner_name=owner_name)},
            ),
            wait=wait,
        )

    async def delete(
        self, project_id: str, branch_id: str, database_name: str, *, wait: bool | float = False
    ) -> DatabaseDeleted:
        """Delete a database."""
        return await self._caller.start(
            request("DELETE", _DATABASE, DatabaseDeleted, project_id, branch_id, database_name),
            wait=wait,
        )
