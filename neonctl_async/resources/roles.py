"""Postgres roles of a branch."""

import builtins

from msgspec import UNSET, UnsetType

from neonctl_async.models.roles import (
    Role,
    RoleDeleted,
    RolePasswordResponse,
    RoleResponse,
    RolesResponse,
    RoleUpdated,
)
from neonctl_async.models.secret import Secret
from neonctl_async.resources.base import Resource, drop_unset
from neonctl_async.transport.protocol import request

_ROLES = "/projects/{project_id}/branches/{branch_id}/roles"
_ROLE = f"{_ROLES}/{{role_name}}"


class Roles(Resource):
    """Postgres roles of a branch. ``wait`` as in :meth:`Branches.create`."""

    async def list(self, project_id: str, branch_id: str) -> builtins.list[Role]:
        """The roles of a branch, without their passwords."""
        response = await self._requester.send(
            request("GET", _ROLES, RolesResponse, project_id, branch_id)
        )
        return response.roles

    async def get(self, project_id: str, branch_id: str, role_name: str) -> Role:
        """One role, without its password."""
        response = await self._requester.send(
            request("GET", _ROLE, RoleResponse, project_id, branch_id, role_name)
        )
        return response.role

    async def create(
        self,
        project_id: str,
        branch_id: str,
        *,
        name: str,
        no_login: bool | UnsetType = UNSET,
        wait: bool | float = False,
    ) -> RoleUpdated:
        """Create a role; its password is in this answer. With ``no_login`` nobody connects as it.

        Connections to a compute of the branch that runs are dropped.
        """
        return await self._requester.start(
            request(
                "POST",
                _ROLES,
                RoleUpdated,
                project_id,
                branch_id,
                body={"role": drop_unset(name=name, no_login=no_login)},
            ),
            wait=wait,
        )

    async def delete(
        self, project_id: str, branch_id: str, role_name: str, *, wait: bool | float = False
    ) -> RoleDeleted:
        """Delete a role."""
        return await self._requester.start(
            request("DELETE", _ROLE, RoleDeleted, project_id, branch_id, role_name),
            wait=wait,
        )

    async def reveal_password(self, project_id: str, branch_id: str, role_name: str) -> Secret:
        """The password of a role, if the project stores passwords."""
        response = await self._requester.send(
            request(
                "GET",
                f"{_ROLE}/reveal_password",
                RolePasswordResponse,
                project_id,
                branch_id,
                role_name,
            )
        )
        return response.password

    async def reset_password(
        self, project_id: str, branch_id: str, role_name: str, *, wait: bool | float = False
    ) -> RoleUpdated:
        """Give a role a new password, which is in this answer.

        The old one is valid until the last operation has finished; connections are dropped.
        """
        return await self._requester.start(
            request(
                "POST", f"{_ROLE}/reset_password", RoleUpdated, project_id, branch_id, role_name
            ),
            wait=wait,
        )
