"""VPC endpoints of an organization, and those that a project is restricted to."""

from neonctl_async.models.base import Model


class VPCEndpoint(Model, kw_only=True):
    """A VPC endpoint and the label it was assigned with."""

    vpc_endpoint_id: str
    label: str | None = None


class VPCEndpointWithRegion(VPCEndpoint, kw_only=True):
    """A VPC endpoint of an organization, and its region."""

    region_id: str


class VPCEndpointDetails(VPCEndpoint, kw_only=True):
    """A VPC endpoint, its state, and the projects that are restricted to it."""

    state: str | None = None
    num_restricted_projects: int | None = None
    example_restricted_projects: list[str] = []


class VPCEndpointsResponse(Model, kw_only=True):
    """The answer that lists VPC endpoints of a region or a project."""

    endpoints: list[VPCEndpoint]


class VPCEndpointsWithRegionResponse(Model, kw_only=True):
    """The answer that lists VPC endpoints of all regions."""

    endpoints: list[VPCEndpointWithRegion]
