"""The part of a client that a fleet uses."""

from collections.abc import Coroutine, Mapping
from typing import Protocol, TypeVar

from neonctl_async.provisioning.branches import ProvisionedBranches
from neonctl_async.resources.endpoints import Endpoints
from neonctl_async.resources.projects import Projects
from neonctl_async.transport.encoding.queries import QueryValue

T = TypeVar("T")


class FleetClient(Protocol):
    """The part of a :class:`neonctl_async.NeonClient` that a fleet uses."""

    @property
    def projects(self) -> Projects:
        """Projects, and access to them."""
        ...

    @property
    def branches(self) -> ProvisionedBranches:
        """Branches, with the methods that combine requests."""
        ...

    @property
    def endpoints(self) -> Endpoints:
        """Computes."""
        ...

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, QueryValue] | None = None,
        type: type[T],
    ) -> Coroutine[None, None, T]:
        """Call an endpoint and return the response as ``type``."""
        ...
