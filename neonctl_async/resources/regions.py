"""Regions."""

import builtins

from msgspec import UNSET, UnsetType

from neonctl_async.models.regions import Region, RegionsResponse
from neonctl_async.resources.base import Resource


class Regions(Resource):
    """The regions that can host projects."""

    async def list(self, *, org_id: str | UnsetType = UNSET) -> builtins.list[Region]:
        """Return the regions. With ``org_id``, return those that the organization may use."""
        response = await self._send("GET", "/regions", RegionsResponse, query={"org_id": org_id})
        return response.regions
