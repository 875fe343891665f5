"""The local control plane: an HTTP server that implements the Neon API on SQLite.

The server listens on loopback. It keeps its data in memory, or in a file that survives a killed
process::

    async with LocalControlPlane() as control_plane:
        ...  # any client: control_plane.base_url, control_plane.api_key
"""

from typing import TYPE_CHECKING

from neonctl_async._lazy import lazy_names

# Type checkers read these imports. At runtime, a name is imported on first use.
if TYPE_CHECKING:
    from neonctl_local.clock import Clock, ManualClock
    from neonctl_local.control_plane import LocalControlPlane
    from neonctl_local.errors import ApiError
    from neonctl_local.postgres.errors import PostgresUnavailableError
    from neonctl_local.server.faults import Fault, InjectedFault
    from neonctl_local.server.tenant import Tenant
    from neonctl_local.server.tenant_state import ServedRequest
    from neonctl_local.settings import (
        BackgroundIntervals,
        ConnectionLimits,
        Durations,
        PostgresSettings,
        RateLimits,
    )
    from neonctl_local.storage.tables import PlannedFailure
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            ".clock": ("Clock", "ManualClock"),
            ".errors": ("ApiError",),
            ".postgres.errors": ("PostgresUnavailableError",),
            ".control_plane": ("LocalControlPlane",),
            ".server.faults": ("Fault", "InjectedFault"),
            ".server.tenant": ("Tenant",),
            ".server.tenant_state": ("ServedRequest",),
            ".settings": (
                "BackgroundIntervals",
                "ConnectionLimits",
                "Durations",
                "PostgresSettings",
                "RateLimits",
            ),
            ".storage.tables": ("PlannedFailure",),
        },
    )

__all__ = [
    "ApiError",
    "BackgroundIntervals",
    "Clock",
    "ConnectionLimits",
    "Durations",
    "Fault",
    "InjectedFault",
    "LocalControlPlane",
    "ManualClock",
    "PlannedFailure",
    "PostgresSettings",
    "PostgresUnavailableError",
    "RateLimits",
    "ServedRequest",
    "Tenant",
]
