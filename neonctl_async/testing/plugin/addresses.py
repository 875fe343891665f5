"""Where tests run: on a control plane of the run, or on the platform."""

from typing import Protocol

from neonctl_async.client import NeonClient
from neonctl_async.config import RateBudget
from neonctl_async.models.secret import Secret


class LocalServer(Protocol):
    """Where a control plane is served, and the console that rules it."""

    @property
    def base_url(self) -> str:
        """Where its clients send their requests."""
        ...

    @property
    def control_url(self) -> str:
        """Where commands for it go."""
        ...

    @property
    def control_token(self) -> str:
        """What they have to carry."""
        ...


class CloudAccount(Protocol):
    """An account on the platform, and the project that its tests run in."""

    api_key: str
    base_url: str | None
    project_id: str


def cloud_client(platform: CloudAccount, *, parts: int = 1) -> NeonClient:
    """A client of an account, one of so many that share its rate."""
    return NeonClient(
        Secret(platform.api_key), base_url=platform.base_url, budget=RateBudget().split(parts)
    )
