"""The local control plane: an HTTP server that implements the Neon API on SQLite.

The server listens on loopback. Its data is in memory, or in a file that keeps the data even if the
process is killed::

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
    from neonctl_local.engine.lifecycle import PLANNED_ERROR
    from neonctl_local.errors import ApiError
    from neonctl_local.postgres.directories import remove_leftovers
    from neonctl_local.postgres.errors import ClusterError, PostgresUnavailableError
    from neonctl_local.postgres.migrated import template_lock
    from neonctl_local.postgres.servers.descriptors import raise_descriptor_limit
    from neonctl_local.server.faults import PRESETS, Fault, InjectedFault
    from neonctl_local.server.served_request import ServedRequest
    from neonctl_local.server.tenant import Tenant
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
        "engine.lifecycle": ("PLANNED_ERROR",),
        "errors": ("ApiError",),
        "postgres.directories": ("remove_leftovers",),
        "postgres.errors": ("ClusterError", "PostgresUnavailableError"),
        "postgres.migrated": ("template_lock",),
        "postgres.servers.descriptors": ("raise_descriptor_limit",),
        "server.faults": ("PRESETS", "Fault", "InjectedFault"),
        "server.served_request": ("ServedRequest",),
        "server.tenant": ("Tenant",),
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
    "PLANNED_ERROR",
    "PRESETS",
    "ApiError",
    "BackgroundIntervals",
    "Clock",
    "ClusterError",
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
    "raise_descriptor_limit",
    "remove_leftovers",
    "template_lock",
]

_logging.getLogger(__name__).addHandler(_logging.NullHandler())
