"""Finds the server for a connection to the proxy, and starts it if its compute is idle."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from neonctl_local.engine import admission, databases
from neonctl_local.errors import ApiError, StorageFullError
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.proxy.connector import Route
from neonctl_local.postgres.proxy.errors import ComputeRefusedError
from neonctl_local.postgres.proxy.scram import Verifier
from neonctl_local.server.tenants.state import TenantState
from neonctl_local.storage.tables import Operation
from neonctl_local.storage.transactions import Transaction

UNKNOWN: Final = (
    "The requested endpoint could not be found, or you don't have access to it. "
    "Please check the provided ID and try again."
)
"""Neon's message."""
DISABLED: Final = "The endpoint has been disabled. Enable it using the API and retry."
_ATTEMPTS: Final = 3


class ComputeRoutes:
    """The computes of all tenants, as the proxy sees them. Endpoint ids are unique."""

    def __init__(self, tenants: Sequence[TenantState], clusters: Clusters) -> None:
        self._tenants: Final = tenants
        self._clusters: Final = clusters

    async def route(self, endpoint_id: str, address: str) -> Route:
        """Start a compute if it is idle, and return the route to it for the address of a client.

        Raise ComputeRefusedError.
        """
        for state in tuple(self._tenants):
            if await state.database.read(databases.route, endpoint_id) is not None:
                return await self._started(state, endpoint_id, address)
        raise ComputeRefusedError(UNKNOWN, "XX000")

    async def _started(self, state: TenantState, endpoint_id: str, address: str) -> Route:
        for _ in range(_ATTEMPTS):
            target = await state.database.read(databases.route, endpoint_id)
            if target is None:
                raise ComputeRefusedError(UNKNOWN, "XX000")
            if target.disabled:
                raise ComputeRefusedError(DISABLED, "XX000")
            settings, protected = target.project_settings, target.protected
            if refusal := admission.refusal(settings, address, protected=protected):
                raise ComputeRefusedError(refusal, "XX000")
            start = await self._wake(state, endpoint_id)
            if start is not None:
                await self._settled(state, start)
            socket = self._clusters.socket(target.branch_id)
            if socket is not None:
                find_verifier = partial(self._find_verifier, target.branch_id)
                return Route(socket, target.type == "read_only", find_verifier)
        raise ComputeRefusedError(f"the compute {endpoint_id} does not stay up", "57P03")

    async def _find_verifier(self, branch_id: str, role: str) -> Verifier | None:
        try:
            return Verifier.parse(await self._clusters.verifier(branch_id, role))
        except ClusterError as error:
            raise ComputeRefusedError(str(error), "57P03") from error

    async def _wake(self, state: TenantState, endpoint_id: str) -> Operation | None:
        try:
            return await state.database.run(databases.wake, endpoint_id)
        except StorageFullError:
            return None  # a running compute accepts connections while the disk is full
        except ApiError as error:
            raise ComputeRefusedError(error.message) from None

    async def _settled(self, state: TenantState, start: Operation) -> None:
        assert state.databases is not None, "the proxy serves only real databases"
        runner = state.databases.runner
        runner.wake()
        while start.is_open:
            changed = runner.changed
            start = await state.database.read(Transaction.get, Operation, start.id)
            if start.is_open:
                await changed.wait()
        if not start.succeeds:
            raise ComputeRefusedError(f"the compute did not start: {start.error}", "57P03")
