"""The asyncio client for the Neon control-plane API that waits on operations.

::

    async with NeonClient() as neon:
        created = await neon.branches.create("late-frost-12345678", name="preview")
        done = await neon.operations.wait(created)
"""

from msgspec import UNSET, UnsetType

from neonctl_async._version import __version__
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
    NeonError,
    NotFoundError,
    OperationFailedError,
    PermissionDeniedError,
    RateLimitedError,
    RequestTimeoutError,
    ServerError,
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
from neonctl_async.models.api_keys import ApiKey, ApiKeyCreated, ApiKeyCreator, ApiKeyRevoked
from neonctl_async.models.branches import (
    Annotation,
    Branch,
    BranchCreated,
    BranchCreator,
    BranchDeleted,
    BranchRecovery,
    BranchRestrictedAction,
)
from neonctl_async.models.connections import ConnectionDetails, ConnectionParameters
from neonctl_async.models.databases import Database
from neonctl_async.models.endpoints import (
    Endpoint,
    EndpointSettings,
    EndpointSpec,
    EndpointState,
    EndpointType,
    PreloadLibraries,
)
from neonctl_async.models.operations import (
    Operation,
    OperationAction,
    OperationRef,
    OperationStatus,
    Started,
)
from neonctl_async.models.pagination import Pagination
from neonctl_async.models.projects import (
    AllowedIps,
    DefaultEndpointSettings,
    MaintenanceWindow,
    Project,
    ProjectBranchSpec,
    ProjectCreated,
    ProjectOwner,
    ProjectQuota,
    ProjectSettings,
)
from neonctl_async.models.roles import Role
from neonctl_async.models.secret import Secret
from neonctl_async.pagination import Paginator
from neonctl_async.transport.protocol import Json
from neonctl_async.waiting.targets import Waitable

__all__ = [
    "UNSET",
    "APIError",
    "AllowedIps",
    "Annotation",
    "ApiKey",
    "ApiKeyCreated",
    "ApiKeyCreator",
    "ApiKeyRevoked",
    "AuthenticationError",
    "Branch",
    "BranchCreated",
    "BranchCreator",
    "BranchDeleted",
    "BranchRecovery",
    "BranchRestrictedAction",
    "ClientClosedError",
    "ConfigurationError",
    "ConflictError",
    "ConnectionDetails",
    "ConnectionFailedError",
    "ConnectionLostError",
    "ConnectionParameters",
    "Database",
    "DefaultEndpointSettings",
    "Endpoint",
    "EndpointSettings",
    "EndpointSpec",
    "EndpointState",
    "EndpointType",
    "Hooks",
    "InvalidResponseError",
    "Json",
    "LockedError",
    "MaintenanceWindow",
    "NeonClient",
    "NeonError",
    "NotFoundError",
    "Operation",
    "OperationAction",
    "OperationFailedError",
    "OperationRef",
    "OperationStatus",
    "Pagination",
    "Paginator",
    "PermissionDeniedError",
    "PollPolicy",
    "PreloadLibraries",
    "Project",
    "ProjectBranchSpec",
    "ProjectCreated",
    "ProjectOwner",
    "ProjectQuota",
    "ProjectSettings",
    "RateBudget",
    "RateLimitedError",
    "RequestSent",
    "RequestTimeoutError",
    "ResponseReceived",
    "RetryPlanned",
    "RetryPolicy",
    "Role",
    "Secret",
    "ServerError",
    "Started",
    "StatusChanged",
    "Timeout",
    "TransportError",
    "UnsetType",
    "WaitEnded",
    "WaitError",
    "WaitStarted",
    "WaitTimeoutError",
    "Waitable",
    "__version__",
]
