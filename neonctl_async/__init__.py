"""An asyncio client for the Neon control-plane API that waits for operations.

::

    async with NeonClient() as neon:
        created = await neon.branches.create("late-frost-12345678", name="preview")
        done = await neon.operations.wait(created)
"""

import logging as _logging
from typing import TYPE_CHECKING

from neonctl_async._internal import lazy_names
from neonctl_async._version import __version__

# Type checkers read these imports. At runtime, a name is imported on first use, because the HTTP
# client takes a fifth of a second to import.
if TYPE_CHECKING:
    from msgspec import UNSET

    from neonctl_async.client import NeonClient
    from neonctl_async.config import PollPolicy, RateBudget, RetryPolicy, Timeout
    from neonctl_async.errors import (
        APIError,
        AuthenticationError,
        ClientClosedError,
        ConfigurationError,
        ConflictError,
        ConnectionFailedError,
        ConnectionLostError,
        InvalidResponseError,
        LockedError,
        LookupFailedError,
        MismatchError,
        NeonError,
        NotConnectableError,
        NotFoundError,
        OperationFailedError,
        PermissionDeniedError,
        RateLimitedError,
        RequestTimeoutError,
        ServerError,
        StateTimeoutError,
        TransportError,
        WaitError,
        WaitTimeoutError,
    )
    from neonctl_async.hooks import (
        Hooks,
        RequestSent,
        ResponseReceived,
        RetryPlanned,
        StatusChanged,
        WaitEnded,
        WaitStarted,
    )
    from neonctl_async.models.connection_uri import ConnectionUri
    from neonctl_async.models.endpoints import EndpointSettings, EndpointSpec
    from neonctl_async.models.operations import Operation, OperationRef, OperationStatus
    from neonctl_async.models.projects import (
        DefaultEndpointSettings,
        ProjectBranchSpec,
        ProjectSettings,
    )
    from neonctl_async.models.secret import Secret
    from neonctl_async.pagination import Paginator
    from neonctl_async.waiting.targets import Waitable
    from neonctl_async.waiting.waiter import Wait, WaitOptions
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "msgspec": ("UNSET",),
            ".client": ("NeonClient",),
            ".config": ("PollPolicy", "RateBudget", "RetryPolicy", "Timeout"),
            ".errors": (
                "APIError",
                "AuthenticationError",
                "ClientClosedError",
                "ConfigurationError",
                "ConflictError",
                "ConnectionFailedError",
                "ConnectionLostError",
                "InvalidResponseError",
                "LockedError",
                "LookupFailedError",
                "MismatchError",
                "NeonError",
                "NotConnectableError",
                "NotFoundError",
                "OperationFailedError",
                "PermissionDeniedError",
                "RateLimitedError",
                "RequestTimeoutError",
                "ServerError",
                "StateTimeoutError",
                "TransportError",
                "WaitError",
                "WaitTimeoutError",
            ),
            ".hooks": (
                "Hooks",
                "RequestSent",
                "ResponseReceived",
                "RetryPlanned",
                "StatusChanged",
                "WaitEnded",
                "WaitStarted",
            ),
            ".models.connection_uri": ("ConnectionUri",),
            ".models.endpoints": ("EndpointSettings", "EndpointSpec"),
            ".models.operations": ("Operation", "OperationRef", "OperationStatus"),
            ".models.projects": ("DefaultEndpointSettings", "ProjectBranchSpec", "ProjectSettings"),
            ".models.secret": ("Secret",),
            ".pagination": ("Paginator",),
            ".waiting.targets": ("Waitable",),
            ".waiting.waiter": ("Wait", "WaitOptions"),
        },
        submodules={
            "client",
            "clock",
            "config",
            "errors",
            "hooks",
            "models",
            "pagination",
            "provisioning",
            "resources",
            "transport",
            "waiting",
        },
    )

__all__ = [
    "UNSET",
    "APIError",
    "AuthenticationError",
    "ClientClosedError",
    "ConfigurationError",
    "ConflictError",
    "ConnectionFailedError",
    "ConnectionLostError",
    "ConnectionUri",
    "DefaultEndpointSettings",
    "EndpointSettings",
    "EndpointSpec",
    "Hooks",
    "InvalidResponseError",
    "LockedError",
    "LookupFailedError",
    "MismatchError",
    "NeonClient",
    "NeonError",
    "NotConnectableError",
    "NotFoundError",
    "Operation",
    "OperationFailedError",
    "OperationRef",
    "OperationStatus",
    "Paginator",
    "PermissionDeniedError",
    "PollPolicy",
    "ProjectBranchSpec",
    "ProjectSettings",
    "RateBudget",
    "RateLimitedError",
    "RequestSent",
    "RequestTimeoutError",
    "ResponseReceived",
    "RetryPlanned",
    "RetryPolicy",
    "Secret",
    "ServerError",
    "StateTimeoutError",
    "StatusChanged",
    "Timeout",
    "TransportError",
    "Wait",
    "WaitEnded",
    "WaitError",
    "WaitOptions",
    "WaitStarted",
    "WaitTimeoutError",
    "Waitable",
    "__version__",
]

# Without a handler, logging would print warnings to stderr in programs that do not configure it.
_logging.getLogger(__name__).addHandler(_logging.NullHandler())
