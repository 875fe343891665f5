"""Regions of the platform."""

from neonctl_async.models.base import Model


class Region(Model, kw_only=True):
    """A region where projects can be. ``geo_lat`` and ``geo_long`` are in degrees."""

    region_id: str
    name: str
    default: bool = False
    geo_lat: str | None = None
    geo_long: str | None = None


class RegionsResponse(Model, kw_only=True):
    """The answer of ``GET /regions``."""

    regions: list[Region]
