"""The local control plane: an HTTP server that implements the Neon API on SQLite.

The server listens on loopback. It keeps its data in memory, or in a file that survives a kill of
the process::

    async with LocalControlPlane() as control_plane:
        ...  # any client: control_plane.base_url, control_plane.api_key
"""

import logging as _logging
from importlib import import_module as _import_module
from typing import TYPE_CHECKING

# Type checkers read these imports. At runtime, a name is imported on first use.
if TYPE_CHECKING:
    from neonctl_local.clock import Clock, ManualClock
    from neonctl_local.control_plane import LocalControlPlane
    from neonctl_local.errors import ApiError
    from neonctl_local.postgres.errors import PostgresUnavailableError
    from neonctl_local.server.faults import PRESETS, Fault, InjectedFault
    from neonctl_local.server.tenant import Tenant
    from neonctl_local.server.tenants.state import ServedRequest
    from neonctl_local.settings import (
        BackgroundIntervals,
        ConnectionLimits,
        Durations,
        PostgresSettings,
        RateLimits,
    )
    from neonctl_local.storage.tables import PlannedFailure
else:
    _MODULES = {
        "clock": ("Clock", "ManualClock"),
        "control_plane": ("LocalControlPlane",),
        "errors": ("ApiError",),
        "postgres.errors": ("PostgresUnavailableError",),
        "server.faults": ("PRESETS", "Fault", "InjectedFault"),
        "server.tenant": ("Tenant",),
        "server.tenants.state": ("ServedRequest",),
        "settings": (
            "BackgroundIntervals",
            "ConnectionLimits",
            "Durations",
            "PostgresSettings",
            "RateLimits",
        ),
        "storage.tables": ("PlannedFailure",),
    }

    def __getattr__(name: str) -> object:
        for module, names in _MODULES.items():
            if name in names:
                return getattr(_import_module(f"neonctl_local.{module}"), name)
        raise AttributeError(f"module 'neonctl_local' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return __all__


__all__ = [
    "PRESETS",
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

_logging.getLogger(__name__).addHandler(_logging.NullHandler())
