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
from neonctl_async.waiting.waiter import Wait

_ROLES = "/projects/{project_id}/branches/{branch_id}/roles"
_ROLE = f"{_ROLES}/{{role_name}}"


class RoleCalls(Resource):
    """The API's role endpoints."""

    async def list(self, project_id: str, branch_id: str) -> builtins.list[Role]:
        """Return the roles of a branch, without their passwords."""
        response = await self._send("GET", _ROLES, RolesResponse, project_id, branch_id)
        return response.roles

    async def get(self, project_id: str, branch_id: str, role_name: str) -> Role:
        """Return a role, without its password."""
        response = await self._send("GET", _ROLE, RoleResponse, project_id, branch_id, role_name)
        return response.role

    async def create(
        self,
        project_id: str,
        branch_id: str,
        *,
        name: str,
        no_login: bool | UnsetType = UNSET,
        wait: Wait = False,
    ) -> RoleUpdated:
        """Create a role. The result contains its password.

        Starts ``apply_config``, which closes the connections of running computes. A role with
        ``no_login`` cannot connect.
        """
        body = {"role": drop_unset(name=name, no_login=no_login)}
        return await self._start(
            "POST", _ROLES, RoleUpdated, project_id, branch_id, body=body, wait=wait
        )

    async def delete(
        self, project_id: str, branch_id: str, role_name: str, *, wait: Wait = False
    ) -> RoleDeleted:
        """Delete a role. Starts ``apply_config``."""
        return await self._start(
            "DELETE", _ROLE, RoleDeleted, project_id, branch_id, role_name, wait=wait
        )

    async def reveal_password(self, project_id: str, branch_id: str, role_name: str) -> Secret:
        """Return the password of a role. The project must store passwords."""
        response = await self._send(
            "GET",
            f"{_ROLE}/reveal_password",
            RolePasswordResponse,
            project_id,
            branch_id,
            role_name,
        )
        return response.password

    async def reset_password(
        self, project_id: str, branch_id: str, role_name: str, *, wait: Wait = False
    ) -> RoleUpdated:
        """Reset the password of a role. The result contains the new password.

        Starts ``apply_config``, which closes connections. The old password is valid until the
        last operation has finished.
        """
        return await self._start(
            "POST",
            f"{_ROLE}/reset_password",
            RoleUpdated,
            project_id,
            branch_id,
            role_name,
            wait=wait,
        )
