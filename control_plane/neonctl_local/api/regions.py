"""The regions of projects: Neon's regions at the time of writing."""

from typing import Final

import msgspec

from neonctl_local.api.request import access
from neonctl_local.api.request.calls import Call, Response, respond
from neonctl_local.errors import invalid
from neonctl_local.storage.transactions import Transaction


class Region(msgspec.Struct, frozen=True):
    """A region as the API shows it, with coordinates as text."""

    region_id: str
    name: str
    geo_lat: str
    geo_long: str
    default: bool = False


REGIONS: Final = (
    Region("aws-us-east-1", "AWS US East 1 (N. Virginia)", "38.13", "-78.45"),
    Region("aws-us-east-2", "AWS US East 2 (Ohio)", "39.96", "-83.00", default=True),
    Region("aws-us-west-2", "AWS US West 2 (Oregon)", "46.15", "-123.88"),
    Region("aws-eu-central-1", "AWS Europe Central 1 (Frankfurt)", "50.11", "8.68"),
    Region("aws-eu-west-2", "AWS Europe West 2 (London)", "51.51", "-0.13"),
    Region("aws-sa-east-1", "AWS South America East 1 (São Paulo)", "-23.34", "-46.38"),
    Region("aws-ap-southeast-1", "AWS Asia Pacific 1 (Singapore)", "1.37", "103.80"),
    Region("aws-ap-southeast-2", "AWS Asia Pacific 2 (Sydney)", "-33.87", "151.21"),
    Region("azure-eastus2", "Azure East US 2 (Virginia)", "36.67", "-78.39"),
    Region("azure-westus3", "Azure West US 3 (Arizona)", "33.45", "-112.07"),
    Region("azure-gwc", "Azure Germany West Central (Frankfurt)", "50.11", "8.68"),
)


def check_known(region_id: str, field: str) -> None:
    """Raise 400 if no region has this id. ``field`` is the name of the request field."""
    known = [region.region_id for region in REGIONS]
    if region_id not in known:
        raise invalid(
            f"invalid request: {field}: there is no region {region_id!r}: "
            f"use one of {', '.join(known)}"
        )


def list_active(tx: Transaction, call: Call) -> Response:
    """``GET /regions``: all organizations can use the same regions."""
    org_id = call.query.get("org_id")
    if org_id:
        access.check_organization_visible(tx, call.principal, org_id)
    return respond({"regions": REGIONS})
