"""Personal API keys."""

import builtins

from neonctl_async.models.api_keys import ApiKey, ApiKeyCreated, ApiKeyRevoked
from neonctl_async.resources.base import Resource, drop_unset
from neonctl_async.transport.protocol import request


class ApiKeys(Resource):
    """The personal keys of the account."""

    async def list(self) -> builtins.list[ApiKey]:
        """The keys, without their tokens."""
        return await self._requester.send(request("GET", "/api_keys", builtins.list[ApiKey]))

    async def create(self, *, key_name: str) -> ApiKeyCreated:
        """Create a key. Its token is in this answer and never shown again."""
        return await self._requester.send(
            request("POST", "/api_keys", ApiKeyCreated, body=drop_unset(key_name=key_name))
        )

    async def revoke(self, key_id: int) -> ApiKeyRevoked:
        """Revoke a key: at once, and for ever."""
        return await self._requester.send(
            request("DELETE", "/api_keys/{key_id}", ApiKeyRevoked, key_id)
        )
