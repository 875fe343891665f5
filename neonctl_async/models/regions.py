"""Neon regions."""

from neonctl_async.models.base import Model


class Region(Model, kw_only=True):
    """A region that can host projects."""

    region_id: str
    name: str
    default: bool = False
    """True for the region in which projects are created by default."""
    geo_lat: str | None = None
    """The approximate latitude, in degrees."""
    geo_long: str | None = None
    """The approximate longitude, in degrees."""


class RegionsResponse(Model, kw_only=True):
    """The response to ``GET /regions``."""

    regions: list[Region]
