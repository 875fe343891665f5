"""Waits for connections to the computes of a response: finds their addresses and probes them."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from neonctl_async.config import PollPolicy
from neonctl_async.connections.addresses import (
    Address,
    address_of_host,
    address_of_uri,
    names_compute,
)
from neonctl_async.connections.probe import Stage
from neonctl_async.connections.probing import ConnectionWaits, Target
from neonctl_async.errors import NotConnectableError
from neonctl_async.models.connection_uri import ConnectionUri
from neonctl_async.models.databases import (
    ConnectionDetails,
    ConnectionURIResponse,
    DatabasesResponse,
)
from neonctl_async.models.endpoints import Endpoint, EndpointResponse, EndpointsResponse
from neonctl_async.models.operations import Operation, OperationAction, OperationsResponse
from neonctl_async.transport.calls import Deadline
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.transport.protocol import Request, request
from neonctl_async.transport.session import Session

_PROJECT = "/projects/{project_id}"


class Connector:
    """Waits until computes accept connections."""

    def __init__(self, session: Session, policy: PollPolicy, dispatcher: HookDispatcher) -> None:
        self._session = session
        self._waits = ConnectionWaits(policy, dispatcher)

    def close(self) -> None:
        """End all waits with ClientClosedError."""
        self._waits.close()

    async def connect(self, response: OperationsResponse, deadline: Deadline) -> None:
        """Wait until the computes that a response names accept connections.

        These are the computes in the response and those of its operations, except for computes that
        the operations suspend. Raises NotConnectableError.
        """
        named = [record.id for record in _records(response)] or list(_started(response))
        if not named:
            return
        known = [address for one in _uris(response) if (address := _address_of(one)) is not None]
        targets: list[Target] = []
        with deadline.scope() as scope:
            computes = await self._computes(response)
            targets += [await self._target(compute, known) for compute in computes]
        if scope.cancelled_caught:
            raise _not_found_in_time(named[0], deadline)
        await self._waits.wait(targets, deadline)

    async def connect_to(self, compute: Endpoint, deadline: Deadline) -> None:
        """Wait until a compute accepts connections. Raises NotConnectableError."""
        targets: list[Target] = []
        with deadline.scope() as scope:
            targets.append(await self._target(compute, []))
        if scope.cancelled_caught:
            raise _not_found_in_time(compute.id, deadline)
        await self._waits.wait(targets, deadline)

    async def read(self, project_id: str, endpoint_id: str, deadline: Deadline) -> Endpoint:
        """Return a compute. Raises NotConnectableError at the deadline."""
        with deadline.scope():
            return (await self._session.send(_get(project_id, endpoint_id))).endpoint
        raise _not_found_in_time(endpoint_id, deadline)

    async def _computes(self, response: OperationsResponse) -> list[Endpoint]:
        """Return the computes of a response. Reads the computes that only its operations name."""
        computes = {record.id: record for record in _records(response)}
        missing = {id: one for id, one in _started(response).items() if id not in computes}
        if len(missing) == 1:
            [operation] = missing.values()
            read = await self._session.send(_get(operation.project_id, next(iter(missing))))
            return [*computes.values(), read.endpoint]
        for project_id in dict.fromkeys(operation.project_id for operation in missing.values()):
            get_all = request("GET", f"{_PROJECT}/endpoints", EndpointsResponse, project_id)
            listed = (await self._session.send(get_all)).endpoints
            computes |= {record.id: record for record in listed if record.id in missing}
        return list(computes.values())

    async def _target(self, compute: Endpoint, known: list[Address]) -> Target:
        """Return a compute with its address. ``known`` are the addresses read so far."""
        if compute.disabled:
            raise _unreachable(compute, "startup", "it is disabled: enable it first")
        for address in known:
            if address.endpoint_id == compute.id:
                return Target(compute.id, address)
        own = address_of_host(compute.host)
        if names_compute(compute.host, compute.id) and not own.is_reserved:
            return Target(compute.id, own)
        for address in known:
            if (sibling := address.of_compute(compute.id)) is not None:
                return Target(compute.id, sibling)
        known.append(await self._read_address(compute))
        return Target(compute.id, known[-1])

    async def _read_address(self, compute: Endpoint) -> Address:
        """Return the address in the connection URI of a compute, for any of its databases.

        The host names of a local control plane never resolve. With real databases, the URI contains
        the address that all computes share, and the option that selects this compute.
        """
        ids = compute.project_id, compute.branch_id
        path = f"{_PROJECT}/branches/{{branch_id}}/databases"
        databases = (
            await self._session.send(request("GET", path, DatabasesResponse, *ids))
        ).databases
        if not databases:
            reason = f"branch {compute.branch_id} has no database, and so no connection URI"
            raise _unreachable(compute, "dns", reason)
        query = {
            "database_name": databases[0].name,
            "role_name": databases[0].owner_name,
            "branch_id": compute.branch_id,
            "endpoint_id": compute.id,
        }
        path = f"{_PROJECT}/connection_uri"
        get = request("GET", path, ConnectionURIResponse, compute.project_id, query=query)
        address = _address_of((await self._session.send(get)).uri)
        if address is None:
            raise _unreachable(compute, "dns", "its connection URI cannot be read")
        return address


def _get(project_id: str, endpoint_id: str) -> Request[EndpointResponse]:
    path = f"{_PROJECT}/endpoints/{{endpoint_id}}"
    return request("GET", path, EndpointResponse, project_id, endpoint_id)


def _records(response: OperationsResponse) -> Iterable[Endpoint]:
    """Return the computes that a response contains."""
    found = [getattr(response, "endpoint", None), *getattr(response, "endpoints", ())]
    return [record for record in found if isinstance(record, Endpoint)]


def _started(response: OperationsResponse) -> Mapping[str, Operation]:
    """Return the last operation of each compute, unless it suspends the compute."""
    last = {one.endpoint_id: one for one in response.operations if one.endpoint_id is not None}
    return {
        endpoint_id: operation
        for endpoint_id, operation in last.items()
        if operation.action != OperationAction.SUSPEND_COMPUTE
    }


def _uris(response: OperationsResponse) -> list[ConnectionUri]:
    details: list[ConnectionDetails] = getattr(response, "connection_uris", [])
    return [one.connection_uri for one in details]


def _address_of(uri: ConnectionUri) -> Address | None:
    with suppress(ValueError):
        return address_of_uri(uri)
    return None


def _unreachable(compute: Endpoint, stage: Stage, reason: str) -> NotConnectableError:
    """Return the error for a compute to which no connection can be attempted."""
    return NotConnectableError(
        endpoint_id=compute.id,
        host=compute.host,
        stage=stage,
        reason=reason,
        is_final=True,
        timeout=0.0,
    )


def _not_found_in_time(endpoint_id: str, deadline: Deadline) -> NotConnectableError:
    return NotConnectableError(
        endpoint_id=endpoint_id,
        host="",
        stage="dns",
        reason="Neon did not return its address in time",
        is_final=False,
        timeout=deadline.timeout or 0.0,
    )
