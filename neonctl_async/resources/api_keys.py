"""Personal API keys."""

import builtins

from neonctl_async.models.api_keys import ApiKey, ApiKeyCreated, ApiKeyRevoked
from neonctl_async.resources.base import Resource, drop_unset


class ApiKeys(Resource):
    """The personal API keys of the account."""

    async def list(self) -> builtins.list[ApiKey]:
        """Return the API keys, without their tokens."""
        return await self._send("GET", "/api_keys", builtins.list[ApiKey])

    async def create(self, *, key_name: str) -> ApiKeyCreated:
        """Create an API key called ``key_name``.

        The result contains the secret token. Neon returns the token only once.
        """
        return await self._send(
            "POST", "/api_keys", ApiKeyCreated, body=drop_unset(key_name=key_name)
        )

    async def revoke(self, key_id: int) -> ApiKeyRevoked:
        """Revoke an API key, immediately and permanently."""
        return await self._send("DELETE", "/api_keys/{key_id}", ApiKeyRevoked, key_id)
