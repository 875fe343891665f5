"""Computes. The API calls them endpoints."""

import builtins
from typing import Literal, Unpack, overload

from msgspec import UNSET, UnsetType

from neonctl_async.models.endpoints import (
    ComputeSettings,
    Endpoint,
    EndpointDeleted,
    EndpointResponse,
    EndpointsResponse,
    EndpointState,
    EndpointTypeName,
    EndpointUpdated,
)
from neonctl_async.resources.base import (
    NO_DELETED_COMPUTE,
    Resource,
    check_name,
    check_settings,
    drop_unset,
)
from neonctl_async.resources.names import Wanted
from neonctl_async.transport.calls import Deadline
from neonctl_async.waiting.states.sources import ComputeSource
from neonctl_async.waiting.waiter import DEFAULT_TIMEOUT, Wait, check_timeout

_ENDPOINTS = "/projects/{project_id}/endpoints"
_ENDPOINT = f"{_ENDPOINTS}/{{endpoint_id}}"


class EndpointCalls(Resource):
    """The API's compute endpoints."""

    async def list(self, project_id: str) -> builtins.list[Endpoint]:
        """Return the computes of a project.

        :meth:`neon.branches.list_endpoints` returns the computes of a branch.
        """
        response = await self._send("GET", _ENDPOINTS, EndpointsResponse, project_id)
        return response.endpoints

    async def get(self, project_id: str, endpoint_id: str) -> Endpoint:
        """Return a compute."""
        response = await self._send("GET", _ENDPOINT, EndpointResponse, project_id, endpoint_id)
        return response.endpoint

    async def find(self, project_id: str, name: str) -> Endpoint:
        """Return the compute with exactly this name. Sends one request.

        Raises LookupFailedError, suggesting other names, if there is no such compute, and
        ValueError, listing the ids, if more than one compute has the name.
        """
        check_name("name", name)
        wanted = Wanted("compute", f"project {project_id}", name)
        return wanted.one(await self.list(project_id))

    async def create(
        self,
        project_id: str,
        *,
        branch_id: str,
        type: EndpointTypeName,
        region_id: str | UnsetType = UNSET,
        wait: Wait = False,
        **compute: Unpack[ComputeSettings],
    ) -> EndpointUpdated:
        """Create a compute for a branch. Starts ``start_compute``.

        ``type`` is an :class:`EndpointType`; a branch has at most one ``read_write`` compute.
        """
        check_settings(ComputeSettings, compute)
        return await self._start(
            "POST",
            _ENDPOINTS,
            EndpointUpdated,
            project_id,
            body={
                "endpoint": drop_unset(
                    branch_id=branch_id, type=type, region_id=region_id, **compute
                )
            },
            wait=wait,
            no_compute=no_compute_with(compute),
        )

    async def update(
        self,
        project_id: str,
        endpoint_id: str,
        *,
        wait: Wait = False,
        **changes: Unpack[ComputeSettings],
    ) -> EndpointUpdated:
        """Change the settings of a compute. Starts ``apply_config`` if the compute needs it.

        The compute is ready when all operations have finished.
        """
        check_settings(ComputeSettings, changes)
        return await self._start(
            "PATCH",
            _ENDPOINT,
            EndpointUpdated,
            project_id,
            endpoint_id,
            body={"endpoint": drop_unset(**changes)},
            wait=wait,
            no_compute=no_compute_with(changes),
        )

    async def delete(
        self, project_id: str, endpoint_id: str, *, wait: Wait = False
    ) -> EndpointDeleted:
        """Delete a compute, and close its connections."""
        return await self._start(
            "DELETE",
            _ENDPOINT,
            EndpointDeleted,
            project_id,
            endpoint_id,
            wait=wait,
            no_compute=NO_DELETED_COMPUTE,
        )

    @overload
    async def wait_for(
        self,
        project_id: str,
        endpoint_id: str,
        state: Literal["deleted"],
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> None: ...

    @overload
    async def wait_for(
        self,
        project_id: str,
        endpoint_id: str,
        state: Literal["init", "active", "idle"] = "active",
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> Endpoint: ...

    @overload
    async def wait_for(
        self,
        project_id: str,
        endpoint_id: str,
        state: str,
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> Endpoint | None: ...

    async def wait_for(
        self,
        project_id: str,
        endpoint_id: str,
        state: str = "active",
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> Endpoint | None:
        """Wait until a compute is in a state, no matter who changes it. Return the compute.

        A compute is ``deleted`` once Neon no longer finds it; the call then returns None.
        :meth:`neon.branches.wait_for` describes how the wait works. Waiting does not start or
        suspend the compute.
        """
        source = ComputeSource(project_id, endpoint_id)
        return await self._runner.states.wait_for(source, state, timeout)

    async def wait_connectable(
        self, project_id: str, endpoint_id: str, *, timeout: float | None = DEFAULT_TIMEOUT
    ) -> Endpoint:
        """Wait until a compute accepts connections. Return the compute.

        If Neon is creating or starting the compute, the call waits for that first. It then tries to
        start a Postgres session, without a password, until the server requests authentication. On
        Neon, this does not start an idle compute: its proxy requests authentication in place of the
        compute, and starts the compute after the login.

        Raises NotConnectableError after ``timeout`` seconds, or at once if the compute is disabled
        or its host name can never be resolved. Raises StateTimeoutError if the compute has not even
        started in that time, and NotFoundError if it does not exist.
        """
        check_timeout(timeout)
        deadline = Deadline(timeout)
        compute = await self._runner.connector.read(project_id, endpoint_id, deadline)
        if _is_starting(compute):
            source = ComputeSource(project_id, endpoint_id)
            await self._runner.states.wait_until(source, "active", deadline)
        await self._runner.connector.connect_to(compute, deadline)
        if compute.current_state != EndpointState.ACTIVE:
            with deadline.scope():
                return await self.get(project_id, endpoint_id)
        return compute

    async def start(
        self, project_id: str, endpoint_id: str, *, wait: Wait = False
    ) -> EndpointUpdated:
        """Start a compute. Starts ``start_compute``."""
        return await self._act("start", project_id, endpoint_id, wait=wait)

    async def suspend(
        self, project_id: str, endpoint_id: str, *, wait: Wait = False
    ) -> EndpointUpdated:
        """Suspend a compute. Starts ``suspend_compute``."""
        return await self._act(
            "suspend",
            project_id,
            endpoint_id,
            wait=wait,
            no_compute="a suspended compute has none: use wait=True",
        )

    async def restart(
        self, project_id: str, endpoint_id: str, *, wait: Wait = False
    ) -> EndpointUpdated:
        """Restart a compute. Starts ``suspend_compute`` and ``start_compute``."""
        return await self._act("restart", project_id, endpoint_id, wait=wait)

    async def _act(
        self, action: str, project_id: str, endpoint_id: str, *, wait: Wait, no_compute: str = ""
    ) -> EndpointUpdated:
        return await self._start(
            "POST",
            f"{_ENDPOINT}/{action}",
            EndpointUpdated,
            project_id,
            endpoint_id,
            wait=wait,
            no_compute=no_compute,
        )


def no_compute_with(settings: ComputeSettings) -> str:
    """Return the reason why a compute with these settings cannot accept connections, or ""."""
    is_disabled = settings.get("disabled") is True
    return "a disabled compute accepts none: use wait=True" if is_disabled else ""


def _is_starting(compute: Endpoint) -> bool:
    is_new = compute.current_state == EndpointState.INIT
    return is_new or compute.pending_state == EndpointState.ACTIVE
