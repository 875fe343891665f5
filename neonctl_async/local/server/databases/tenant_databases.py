"""The real databases of one tenant."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from neonctl_async.local.api.branch_data.schemas import SchemaRead
from neonctl_async.local.api.request.calls import Response
from neonctl_async.local.engine import databases, servers
from neonctl_async.local.errors import unprocessable
from neonctl_async.local.postgres.clusters import Clusters
from neonctl_async.local.postgres.errors import ClusterError
from neonctl_async.local.server.databases.cluster_work import ClusterWork
from neonctl_async.local.server.databases.work_runner import WorkRunner

if TYPE_CHECKING:
    from neonctl_async.local.server.tenant_state import TenantState


class TenantDatabases:
    """The clusters of one tenant: the work of its operations, and reads of its schemas."""

    def __init__(self, state: "TenantState", clusters: Clusters) -> None:
        self._database: Final = state.database
        self._clusters: Final = clusters
        self._work: Final = ClusterWork(state.database, clusters, state.utc_now)
        self.runner: Final = WorkRunner(state.database, self._work.perform)

    async def start(self) -> None:
        """Go on with unfinished work. Computes whose servers ended with the last run are idle."""
        await self._database.run(databases.stop_all)
        self.runner.start()

    async def stop(self) -> None:
        """Cancel running work, which stays unfinished."""
        await self.runner.stop()

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

    async def change_all(self, change: Callable[[], Awaitable[None]]) -> None:
        """Change the tables in any way. Delete the clusters that they no longer name."""
        await self.runner.stop()
        before = await self._database.run(servers.cluster_ids)
        try:
            await change()
            after = await self._database.run(servers.cluster_ids)
            await self._clusters.delete(*(before - after))
        finally:
            self.runner.start()
