"""NeonClient: one HTTP session, and the resources that use it."""

import os
from collections.abc import Coroutine, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, TypeVar, cast, overload

from msgspec import UNSET

from neonctl_async.config import (
    ALLOW_HTTP_VARIABLE,
    API_KEY_VARIABLE,
    BASE_URL_VARIABLE,
    Config,
    KeyFunction,
    PollPolicy,
    RateBudget,
    RetryPolicy,
    Timeout,
    as_secret,
    check_hooks,
    resolve_api_key,
    resolve_base_url,
    resolve_http_hosts,
    split_api_key,
)
from neonctl_async.hooks import Hooks
from neonctl_async.models.secret import Secret
from neonctl_async.resources.base import CallRunner
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.transport.encoding import Json, QueryValue
from neonctl_async.transport.protocol import raw_request
from neonctl_async.transport.session import Session
from neonctl_async.waiting.source import OperationSource
from neonctl_async.waiting.waiter import Waiter

if TYPE_CHECKING:
    from neonctl_async.provisioning.branch_objects import Databases, Endpoints, Roles
    from neonctl_async.provisioning.branches import Branches
    from neonctl_async.resources.api_keys import ApiKeys
    from neonctl_async.resources.consumption import Consumption
    from neonctl_async.resources.operations import Operations
    from neonctl_async.resources.organizations import Organizations
    from neonctl_async.resources.projects import Projects
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

T = TypeVar("T")

_JSON = cast("type[Json]", Any)

RESOURCES: Final = {
    "operations": "resources.operations.Operations",
    "projects": "resources.projects.Projects",
    "branches": "provisioning.branches.Branches",
    "endpoints": "provisioning.branch_objects.Endpoints",
    "databases": "provisioning.branch_objects.Databases",
    "roles": "provisioning.branch_objects.Roles",
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
"""The resources, which are imported on first use, because most programs need only a few."""


class NeonClient:
    """A client for the Neon control-plane API. Use it with ``async with``.

    Many tasks can use a client at the same time, on one event loop. One task may open it, and
    another may close it.

    ``api_key`` defaults to the environment variable ``NEON_API_KEY``. It may be a function, sync or
    async, that returns the key: the client calls it before the first request and after a 401, and
    sends the request a second time if the key changed. ``base_url`` defaults to ``NEON_API_HOST``,
    or else to Neon's address. The client sends at most ``max_connections`` requests at the same
    time. It rejects responses larger than ``max_response_bytes``. ``ca_file`` is a PEM file of
    certificates to trust instead of the system's. With ``trust_env``, requests use the proxies from
    the environment (``HTTPS_PROXY``, ``NO_PROXY``). ``allow_http`` names the hosts, besides
    loopback addresses, to which the API key may be sent unencrypted, such as a local control plane
    in another container. It defaults to ``NEON_ALLOW_HTTP``, a comma-separated list.

    Raises ConfigurationError for a missing or invalid setting, before any request.
    """

    operations: "Operations"
    """Operations, and waits for them."""
    projects: "Projects"
    """Projects, and access to them."""
    branches: "Branches"
    """Branches, with their schemas, restores and anonymized copies."""
    endpoints: "Endpoints"
    """Computes."""
    databases: "Databases"
    """Databases of a branch."""
    roles: "Roles"
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
    """Neon Auth on a branch: users, sign-in providers, domains and settings."""
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

    def __init__(
        self,
        api_key: str | Secret | KeyFunction | None = None,
        *,
        base_url: str | Secret | None = None,
        timeout: Timeout = Timeout(),
        retry: RetryPolicy = RetryPolicy(),
        budget: RateBudget = RateBudget(),
        polling: PollPolicy = PollPolicy(),
        hooks: Sequence[Hooks] = (),
        max_connections: int = 100,
        max_response_bytes: int = 64 * 1024 * 1024,
        ca_file: str | os.PathLike[str] | None = None,
        trust_env: bool = False,
        allow_http: Sequence[str] | None = None,
    ) -> None:
        # From here on no frame holds a secret in the clear.
        api_key, key_function = split_api_key(api_key)
        base_url = as_secret(base_url)
        http_hosts = resolve_http_hosts(allow_http, os.environ.get(ALLOW_HTTP_VARIABLE, ""))
        environment_url = Secret(os.environ.get(BASE_URL_VARIABLE, ""))
        self._config = Config(
            api_key=Secret("")
            if key_function
            else resolve_api_key(api_key, Secret(os.environ.get(API_KEY_VARIABLE, ""))),
            key_function=key_function,
            base_url=resolve_base_url(base_url, environment_url, http_hosts),
            timeout=timeout,
            retry=retry,
            budget=budget,
            polling=polling,
            hooks=check_hooks(hooks),
            max_connections=max_connections,
            max_response_bytes=max_response_bytes,
            ca_file=None if ca_file is None else os.fspath(ca_file),
            trust_env=trust_env,
        )
        dispatcher = HookDispatcher(self._config.hooks)
        self._session = Session(self._config, dispatcher)
        source = OperationSource(self._session)
        self._waiter = Waiter(source, polling, dispatcher)
        self._runner = CallRunner(self._session, self._waiter, source, self._config, dispatcher)

    if not TYPE_CHECKING:  # a type checker reports this mistake itself

        def __enter__(self) -> NoReturn:
            raise TypeError("a NeonClient is opened with `async with`, inside an async function")

        def __exit__(self, *_: object) -> None: ...

    async def __aenter__(self) -> Self:
        self._session.open()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        # A traceback may show a client whose __init__ has failed.
        config: Config | None = getattr(self, "_config", None)
        return f"<NeonClient {config.base_url if config else '(not initialized)'}>"

    @property
    def base_url(self) -> str:
        """The base URL of all requests."""
        return self._config.base_url

    @property
    def requests_sent(self) -> int:
        """The number of HTTP requests sent so far: calls, retries and polls."""
        return self._session.requests_sent

    @property
    def requests_last_minute(self) -> int:
        """The number of requests that currently count against ``budget.per_minute``.

        A request counts from its start until 60 seconds after its end. Read this property on the
        client's event loop.
        """
        return self._session.requests_last_minute

    @property
    def held_seconds(self) -> float:
        """How many more seconds waiting calls and polls are held back; 0.0 if they can be sent now.

        It is above zero while the minute's requests are used up, by this client or by others that
        share its budget, and during the pause after a 429. Read this property on the client's event
        loop.
        """
        return self._session.held_seconds

    @property
    def poll_stretch(self) -> float:
        """The factor by which polls are currently delayed; 1.0 if the rate budget suffices.

        Read this property on the client's event loop.
        """
        return self._waiter.pollers.stretch()

    def server_now(self) -> datetime:
        """Return the time on Neon's clock, according to the latest response.

        It is the local time if the clocks agree, or if there has been no response yet. Call this
        method on the client's event loop.
        """
        return self._session.server_now()

    @property
    def budget(self) -> RateBudget:
        """The rate limits of this client."""
        return self._config.budget

    @overload
    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, QueryValue] | None = None,
        body: object = UNSET,
        type: type[T],
    ) -> Coroutine[None, None, T]: ...

    @overload
    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, QueryValue] | None = None,
        body: object = UNSET,
    ) -> Coroutine[None, None, Json]: ...

    # Not async: the frame of a coroutine would contain the body, and a password in it.
    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, QueryValue] | None = None,
        body: object = UNSET,
        type: type[T] | None = None,
    ) -> Coroutine[None, None, T | Json]:
        """Call an endpoint that has no method of its own, with the same retries, budget and errors.

        ``path`` is relative to the base URL and starts with ``/``. ``query`` holds the query
        parameters, and ``body`` can be anything that msgspec encodes to JSON. The response is
        decoded to ``type``. Without ``type``, the result is plain JSON, or None for an empty
        response. For a call that starts operations, pass ``type=OperationsResponse`` to get a
        result that you can wait for. Raises ValueError for a path that could leave the base URL.
        """
        if type is None:
            return self._runner.send(raw_request(method, path, _JSON, query=query, body=body))
        return self._runner.send(raw_request(method, path, type, query=query, body=body))

    async def aclose(self) -> None:
        """Close all connections. Running calls and waits raise ClientClosedError."""
        try:
            await self._runner.aclose()
        finally:
            await self._session.aclose()


class _Attribute:
    """A descriptor that creates a resource on first use, and stores it in the client.

    Unlike a ``__getattr__``, it does not change the errors for other attributes, and mocks with
    ``spec=NeonClient`` include the resource.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, client: "NeonClient | None", owner: "type[NeonClient]") -> object:
        if client is None:
            return self
        module, _, kind = RESOURCES[self._name].rpartition(".")
        create = getattr(import_module(f"neonctl_async.{module}"), kind)
        resource = vars(client)[self._name] = create(client._runner)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - this class is a part of NeonClient
        return resource


for _name in RESOURCES:
    setattr(NeonClient, _name, _Attribute(_name))
