from neonctl_async.types import Region
from tests.models.records import REGION, decode


def test_coordinates_are_strings_and_may_be_empty() -> None:
    region = decode(Region, {**REGION, "default": True, "geo_lat": "40.0946", "geo_long": ""})
    assert (region.default, region.geo_lat, region.geo_long) == (True, "40.0946", "")
