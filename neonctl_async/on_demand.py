"""The resources of a client that are imported when they are first used.

A program uses few of them, and all of their records would make the import of the package slower.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from neonctl_async.resources.base import Requester

if TYPE_CHECKING:
    from neonctl_async.provisioning.databases import ProvisionedDatabases
    from neonctl_async.provisioning.endpoints import ProvisionedEndpoints
    from neonctl_async.provisioning.roles import ProvisionedRoles
    from neonctl_async.resources.api_keys import ApiKeys
    from neonctl_async.resources.consumption import Consumption
    from neonctl_async.resources.organizations import Organizations
    from neonctl_async.resources.regions import Regions
    from neonctl_async.resources.services.ai_gateway import AiGateway
    from neonctl_async.resources.services.auth import Auth
    from neonctl_async.resources.services.credentials import Credentials
    from neonctl_async.resources.services.custom_domains import CustomDomains
    from neonctl_async.resources.services.data_api import DataApi
    from neonctl_async.resources.services.functions import Functions
    from neonctl_async.resources.services.logs import Logs
    from neonctl_async.resources.services.storage import Storage
    from neonctl_async.resources.services.triggers import Triggers
    from neonctl_async.resources.snapshots import Snapshots
    from neonctl_async.resources.users import Users

CLASSES: Final = {
    "endpoints": "provisioning.endpoints.ProvisionedEndpoints",
    "databases": "provisioning.databases.ProvisionedDatabases",
    "roles": "provisioning.roles.ProvisionedRoles",
    "snapshots": "resources.snapshots.Snapshots",
    "organizations": "resources.organizations.Organizations",
    "api_keys": "resources.api_keys.ApiKeys",
    "users": "resources.users.Users",
    "regions": "resources.regions.Regions",
    "consumption": "resources.consumption.Consumption",
    "auth": "resources.services.auth.Auth",
    "data_api": "resources.services.data_api.DataApi",
    "storage": "resources.services.storage.Storage",
    "functions": "resources.services.functions.Functions",
    "triggers": "resources.services.triggers.Triggers",
    "credentials": "resources.services.credentials.Credentials",
    "ai_gateway": "resources.services.ai_gateway.AiGateway",
    "custom_domains": "resources.services.custom_domains.CustomDomains",
    "logs": "resources.services.logs.Logs",
}
"""The class of each resource."""


class OnDemand:
    """The resources of a client other than operations, projects and branches."""

    _requester: Requester

    endpoints: "ProvisionedEndpoints"
    """Computes."""
    databases: "ProvisionedDatabases"
    """Databases of a branch."""
    roles: "ProvisionedRoles"
    """Postgres roles of a branch, and their passwords."""
    snapshots: "Snapshots"
    """Snapshots of branches, and their schedules."""
    organizations: "Organizations"
    """Organizations, with their members, API keys and VPC endpoints."""
    api_keys: "ApiKeys"
    """Personal API keys."""
    users: "Users"
    """The account that the API key belongs to."""
    regions: "Regions"
    """Regions that can host projects."""
    consumption: "Consumption"
    """The consumption of projects and branches."""
    auth: "Auth"
    """Neon Auth of a branch: users, sign-in providers, domains and settings."""
    data_api: "DataApi"
    """The Data API: HTTP access to a database of a branch."""
    storage: "Storage"
    """Object storage of a branch: buckets and their objects."""
    functions: "Functions"
    """Functions of a branch, and their deployments."""
    triggers: "Triggers"
    """Triggers of a branch."""
    credentials: "Credentials"
    """Credentials of a branch: tokens for its services."""
    ai_gateway: "AiGateway"
    """The AI gateway of a branch."""
    custom_domains: "CustomDomains"
    """Custom domains of a branch."""
    logs: "Logs"
    """Logs of a branch."""


class _Attribute:
    """Creates a resource at its first use, and replaces itself with it in the client.

    Unlike a ``__getattr__``, it leaves the errors of other attributes alone, and mocks with
    ``spec=NeonClient`` find it.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, client: OnDemand | None, owner: type[OnDemand]) -> object:
        if client is None:
            return self
        module, _, kind = CLASSES[self._name].rpartition(".")
        create = getattr(import_module(f"neonctl_async.{module}"), kind)
        resource = vars(client)[self._name] = create(client._requester)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - this class is a part of OnDemand
        return resource


for _name in CLASSES:
    setattr(OnDemand, _name, _Attribute(_name))
