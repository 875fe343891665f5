"""Organizations and their API keys."""

from msgspec import UNSET, UnsetType

from neonctl_async.models.api_keys import (
    ApiKey,
    ApiKeyCreated,
    ApiKeyCreateRequest,
    ApiKeyRevoked,
)
from neonctl_async.resources.base import Resource
from neonctl_async.transport.protocol import request


class Organizations(Resource):
    """Organizations: their API keys, organization-wide and scoped to a project."""

    async def list_api_keys(self, org_id: str) -> list[ApiKey]:
        """The keys of an organization, without their tokens."""
        return await self._caller.send(
            request("GET", "/organizations/{org_id}/api_keys", list[ApiKey], org_id=org_id)
        )

    async def create_api_key(
        self, org_id: str, *, key_name: str, project_id: str | UnsetType = UNSET
    ) -> ApiKeyCreated:
        """Create a key for an organization, or for one of its projects with ``project_id``.

        Needs a personal key: of an administrator for an organization key, of any member for a
        project-scoped one (specification, sections 4.1 and 5). The token is in this answer and
        never shown again.
        """
        return await self._caller.send(
            request(
                "POST",
                "/organizations/{org_id}/api_keys",
                ApiKeyCreated,
                body=ApiKeyCreateRequest(key_name=key_name, project_id=project_id),
                org_id=org_id,
            )
        )

    async def revoke_api_key(self, org_id: str, key_id: int) -> ApiKeyRevoked:
        """Revoke an organization or project-scoped key, as an administrator."""
        return await self._caller.send(
            request(
                "DELETE",
                "/organizations/{org_id}/api_keys/{key_id}",
                ApiKeyRevoked,
                org_id=org_id,
                key_id=key_id,
            )
        )
