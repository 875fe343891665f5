"""The real databases of one tenant."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from neonctl_async.local.api.branch_data.schemas import SchemaRead
from neonctl_async.local.api.request.calls import Response
from neonctl_async.local.engine import databases
from neonctl_async.local.errors import unprocessable
from neonctl_async.local.postgres.clusters import Clusters
from neonctl_async.local.postgres.errors import ClusterError
from neonctl_async.local.server.databases.cluster_work import ClusterWork
from neonctl_async.local.server.databases.work_runner import WorkRunner

if TYPE_CHECKING:
    from neonctl_async.local.server.tenant_state import TenantState


class TenantDatabases:
    """The clusters of one tenant: the work of its operations, and reads of its schemas."""

    def __init__(
        self,
        state: "TenantState",
        clusters: Clusters,
        close_connections: Callable[[str], Awaitable[None]],
        sweep: Callable[[], Awaitable[None]],
    ) -> None:
        self._sweep: Final = sweep
        self._database: Final = state.database
        self._work: Final = ClusterWork(state.database, clusters, state.utc_now, close_connections)
        self.runner: Final = WorkRunner(state.database, self._work.perform)

    async def start(self) -> None:
        """Go on with unfinished work. Computes whose servers ended with the last run are idle."""
        await self._database.run(databases.stop_all)
        self.runner.start()

    async def stop(self) -> None:
        """Cancel running work, which stays unfinished."""
        await self.runner.stop()

    async def note_activity(self, branch_id: str) -> None:
        """Store how the server of a branch was used, if it runs."""
        await self._work.note_activity(branch_id)

    async def read(self, read: SchemaRead) -> Response:
        """Return the response to a request for schemas. Raise ApiError 422 if one has no data."""
        try:
            schemas = [
                await self._work.read_schema(*source, as_tables=read.as_tables)
                for source in read.sources
            ]
        except ClusterError as error:
            raise unprocessable(str(error)) from None
        return read.respond(schemas)

    async def replace(self, change: Callable[[], Awaitable[None]]) -> None:
        """Replace the tables by ``change``, and delete the clusters that nothing needs any more."""
        await self.stop()
        try:
            await change()
            await self._sweep()
        finally:
            await self.start()
