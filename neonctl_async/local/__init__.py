"""The local control plane: the whole specification, served for real.

An aiohttp server on SQLite, on loopback, in memory or in a file that survives a killed process::

    async with LocalControlPlane() as plane:
        ...  # any client: plane.base_url, plane.api_key
"""

from neonctl_async.local.clock import Clock, ManualClock
from neonctl_async.local.errors import ApiError
from neonctl_async.local.server.control_plane import LocalControlPlane
from neonctl_async.local.server.faults import Fault, InjectedFault
from neonctl_async.local.server.tenant import Tenant
from neonctl_async.local.server.tenant_state import ServedRequest
from neonctl_async.local.settings import BackgroundIntervals, Durations, RateLimits
from neonctl_async.local.storage.tables import PlannedFailure

__all__ = [
    "ApiError",
    "BackgroundIntervals",
    "Clock",
    "Durations",
    "Fault",
    "InjectedFault",
    "LocalControlPlane",
    "ManualClock",
    "PlannedFailure",
    "RateLimits",
    "ServedRequest",
    "Tenant",
]
