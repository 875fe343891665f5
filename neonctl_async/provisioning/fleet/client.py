"""The part of a client that a fleet uses."""

from datetime import datetime
from typing import Protocol

from neonctl_async.provisioning.branch_objects import Endpoints
from neonctl_async.provisioning.branches import Branches
from neonctl_async.resources.projects import Projects


class FleetClient(Protocol):
    """The part of a :class:`neonctl_async.NeonClient` that a fleet uses."""

    @property
    def projects(self) -> Projects:
        """Projects, and access to them."""
        ...

    @property
    def branches(self) -> Branches:
        """Branches, with the methods that combine requests."""
        ...

    @property
    def endpoints(self) -> Endpoints:
        """Computes."""
        ...

    def server_now(self) -> datetime:
        """Return the time on Neon's clock."""
        ...
