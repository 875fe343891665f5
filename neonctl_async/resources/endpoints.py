"""Computes. The API calls them endpoints."""

import builtins
from functools import partial
from typing import Final, Literal, overload

import anyio
from msgspec import UNSET, UnsetType

from neonctl_async.connections.deadline import Deadline
from neonctl_async.models.endpoints import (
    Endpoint,
    EndpointDeleted,
    EndpointResponse,
    EndpointSettings,
    EndpointsResponse,
    EndpointState,
    EndpointType,
    EndpointTypeName,
    EndpointUpdated,
    EnsuredEndpoint,
)
from neonctl_async.resources.base import (
    NO_DELETED_COMPUTE,
    Resource,
    check_name,
    checked_wait,
    drop_unset,
)
from neonctl_async.resources.names import Wanted
from neonctl_async.transport.encoding.paths import path_segment
from neonctl_async.waiting.options import Wait
from neonctl_async.waiting.states.sources import ComputeSource
from neonctl_async.waiting.waiter import DEFAULT_TIMEOUT, check_timeout

_ENDPOINTS = "/projects/{project_id}/endpoints"
_ENDPOINT = f"{_ENDPOINTS}/{{endpoint_id}}"
_DISABLED_COMPUTE: Final = "a disabled compute accepts none: use wait=True"


class Endpoints(Resource):
    """Computes: every endpoint of the API, and methods that combine requests.

    ``autoscaling_limit_min_cu`` and ``autoscaling_limit_max_cu`` limit the size, in compute units
    of at least 0.25. ``suspend_timeout_seconds`` is the idle time before Neon suspends a compute,
    at most 604800. 0 is Neon's default, -1 is never. For ``wait``, see
    :meth:`neon.branches.create`.
    """

    async def list(self, project_id: str) -> builtins.list[Endpoint]:
        """Return the computes of a project.

        :meth:`neon.branches.list_endpoints` returns those of a branch.
        """
        response = await self._send("GET", _ENDPOINTS, EndpointsResponse, project_id)
        return response.endpoints

    async def get(self, project_id: str, endpoint_id: str) -> Endpoint:
        """Return a compute."""
        response = await self._send("GET", _ENDPOINT, EndpointResponse, project_id, endpoint_id)
        return response.endpoint

    async def find(self, project_id: str, name: str) -> Endpoint:
        """Return the compute with exactly this name. Sends one request.

        Raises LookupFailedError, suggesting close names, if there is no such compute, and
        ValueError, listing the ids, if computes share the name.
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
        name: str | UnsetType = UNSET,
        region_id: str | UnsetType = UNSET,
        settings: EndpointSettings | UnsetType = UNSET,
        autoscaling_limit_min_cu: float | UnsetType = UNSET,
        autoscaling_limit_max_cu: float | UnsetType = UNSET,
        provisioner: str | UnsetType = UNSET,
        disabled: bool | UnsetType = UNSET,
        passwordless_access: bool | UnsetType = UNSET,
        suspend_timeout_seconds: int | UnsetType = UNSET,
        wait: Wait = False,
    ) -> EndpointUpdated:
        """Create a compute for a branch. Starts ``start_compute``.

        ``type`` is an :class:`EndpointType`; a branch has at most one ``read_write`` compute.
        Connections cannot start a ``disabled`` compute.
        """
        spec = drop_unset(
            branch_id=branch_id,
            type=type,
            name=name,
            region_id=region_id,
            settings=settings,
            autoscaling_limit_min_cu=autoscaling_limit_min_cu,
            autoscaling_limit_max_cu=autoscaling_limit_max_cu,
            provisioner=provisioner,
            disabled=disabled,
            passwordless_access=passwordless_access,
            suspend_timeout_seconds=suspend_timeout_seconds,
        )
        return await self._start(
            "POST",
            _ENDPOINTS,
            EndpointUpdated,
            project_id,
            body={"endpoint": spec},
            wait=wait,
            no_compute=_DISABLED_COMPUTE if disabled is True else "",
        )

    async def update(
        self,
        project_id: str,
        endpoint_id: str,
        *,
        name: str | UnsetType = UNSET,
        settings: EndpointSettings | UnsetType = UNSET,
        autoscaling_limit_min_cu: float | UnsetType = UNSET,
        autoscaling_limit_max_cu: float | UnsetType = UNSET,
        provisioner: str | UnsetType = UNSET,
        disabled: bool | UnsetType = UNSET,
        passwordless_access: bool | UnsetType = UNSET,
        suspend_timeout_seconds: int | UnsetType = UNSET,
        wait: Wait = False,
    ) -> EndpointUpdated:
        """Change the settings of a compute. Starts ``apply_config`` if the compute needs it.

        The compute is ready when all operations have finished.
        """
        spec = drop_unset(
            name=name,
            settings=settings,
            autoscaling_limit_min_cu=autoscaling_limit_min_cu,
            autoscaling_limit_max_cu=autoscaling_limit_max_cu,
            provisioner=provisioner,
            disabled=disabled,
            passwordless_access=passwordless_access,
            suspend_timeout_seconds=suspend_timeout_seconds,
        )
        return await self._start(
            "PATCH",
            _ENDPOINT,
            EndpointUpdated,
            project_id,
            endpoint_id,
            body={"endpoint": spec},
            wait=wait,
            no_compute=_DISABLED_COMPUTE if disabled is True else "",
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

        Returns None for the state ``deleted``, which a compute is in once Neon no longer finds it.
        :meth:`neon.branches.wait_for` describes how the wait works. A wait does not start or
        suspend the compute.
        """
        source = ComputeSource(project_id, endpoint_id)
        return await self._requester.states.wait_for(source, state, timeout)

    async def wait_connectable(
        self, project_id: str, endpoint_id: str, *, timeout: float | None = DEFAULT_TIMEOUT
    ) -> Endpoint:
        """Wait until a compute accepts connections. Return the compute.

        If Neon is creating or starting the compute, the call waits for that first. It then tries to
        start a Postgres session, without a password, until the server requests authentication. At
        Neon, this does not start an idle compute: its proxy requests authentication in place of the
        compute, and starts the compute after the login.

        Raises NotConnectableError after ``timeout`` seconds, or at once if the compute is disabled
        or its host name can never be resolved. Raises StateTimeoutError if the compute has not even
        started in that time, and NotFoundError if it does not exist.
        """
        check_timeout(timeout)
        deadline = Deadline.after(timeout)
        compute = await self._requester.connector.read(project_id, endpoint_id, deadline)
        if _is_starting(compute):
            await self.wait_for(project_id, endpoint_id, "active", timeout=deadline.left)
        await self._requester.connector.connect_to(compute, deadline)
        if compute.current_state != EndpointState.ACTIVE:
            with anyio.CancelScope(deadline=deadline.at):
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

    async def ensure(
        self,
        project_id: str,
        *,
        branch_id: str,
        type: EndpointTypeName = EndpointType.READ_WRITE,
        name: str | UnsetType = UNSET,
        settings: EndpointSettings | UnsetType = UNSET,
        autoscaling_limit_min_cu: float | UnsetType = UNSET,
        autoscaling_limit_max_cu: float | UnsetType = UNSET,
        provisioner: str | UnsetType = UNSET,
        disabled: bool | UnsetType = UNSET,
        passwordless_access: bool | UnsetType = UNSET,
        suspend_timeout_seconds: int | UnsetType = UNSET,
        wait: Wait = False,
    ) -> EnsuredEndpoint:
        """Return the ``read_write`` compute of a branch. Create it if it does not exist.

        See :meth:`neon.branches.ensure`. ``read_write`` is the only ``type``: a branch may have any
        number of ``read_only`` computes, so a repeated call could not recognize its own. Create
        those together with the branch, in ``endpoints`` of :meth:`neon.branches.ensure`.

        Raises MismatchError if the compute exists but differs from a given setting, and otherwise
        the errors of :meth:`create`.
        """
        from neonctl_async.provisioning.branch_objects import ensure_endpoint

        if type != EndpointType.READ_WRITE:
            raise ValueError(
                f"type is {str(type)!r}: expected 'read_write', the only type that a branch has at "
                "most once; call create(), or branches.ensure() with endpoints="
            )
        path_segment("branch_id", branch_id)
        no_compute = _DISABLED_COMPUTE if disabled is True else ""
        options = checked_wait(wait, no_compute=no_compute)
        creation = partial(
            self.create,
            project_id,
            branch_id=branch_id,
            type=type,
            name=name,
            settings=settings,
            autoscaling_limit_min_cu=autoscaling_limit_min_cu,
            autoscaling_limit_max_cu=autoscaling_limit_max_cu,
            provisioner=provisioner,
            disabled=disabled,
            passwordless_access=passwordless_access,
            suspend_timeout_seconds=suspend_timeout_seconds,
        )
        return await ensure_endpoint(
            self._requester, project_id, branch_id, creation, creation.keywords, options
        )


def _is_starting(compute: Endpoint) -> bool:
    is_new = compute.current_state == EndpointState.INIT
    return is_new or compute.pending_state == EndpointState.ACTIVE
