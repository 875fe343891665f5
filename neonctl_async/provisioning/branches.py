"""The branch methods that combine several requests."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import datetime, timedelta
from uuid import uuid4

from msgspec import UNSET, UnsetType

from neonctl_async.clock import utc_now
from neonctl_async.errors import NotFoundError
from neonctl_async.models.branches import (
    BranchCreated,
)
from neonctl_async.models.endpoints import EndpointSpec
from neonctl_async.provisioning.ephemeral import ephemeral_branch
from neonctl_async.resources.base import check_within
from neonctl_async.resources.branches import Branches
from neonctl_async.waiting.waiter import DEFAULT_TIMEOUT, check_timeout

_MAX_TTL = 10 * 366 * 86400


class ProvisionedBranches(Branches):
    """Branches: every request of :class:`Branches`, and methods that combine requests."""

    def ephemeral(
        self,
        project_id: str,
        *,
        name: str | UnsetType = UNSET,
        name_prefix: str = "ephemeral",
        parent_id: str | UnsetType = UNSET,
        parent_lsn: str | UnsetType = UNSET,
        parent_timestamp: datetime | UnsetType = UNSET,
        init_source: str | UnsetType = UNSET,
        endpoints: Sequence[EndpointSpec] = (EndpointSpec(type="read_write"),),
        ttl_seconds: int | None = 3600,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> AbstractAsyncContextManager[BranchCreated]:
        """``async with`` a branch that is there for the block alone.

        Creates it as :meth:`create` does, waits ``timeout`` seconds at most until it is ready, and
        deletes it on the way out, also after an error or a cancellation, which does not cut the
        deletion short; within 30 seconds. Should the process die before, the platform deletes it
        ``ttl_seconds`` after its creation, 1 or more; None is for accounts whose branches cannot
        expire. The compute that it gets unless told otherwise can be reached by the branch's
        ``connection_uri``.

        Without a ``name`` it gets one of its own that begins with ``name_prefix``, by which it is
        found and deleted even if the connection is lost while it is created. Raises what creating
        and waiting raise; a deletion that fails is raised, or noted on the error that left the
        block. TimeoutError if it takes too long.
        """
        check_timeout(timeout)
        check_within("ttl_seconds", UNSET if ttl_seconds is None else ttl_seconds, 1, _MAX_TTL)
        is_named = not isinstance(name, UnsetType)
        own_name = f"{name_prefix}-{uuid4().hex[:12]}"

        async def create() -> BranchCreated:
            lifetime = None if ttl_seconds is None else timedelta(seconds=ttl_seconds)
            return await self.create(
                project_id,
                name=name if is_named else own_name,
                parent_id=parent_id,
                parent_lsn=parent_lsn,
                parent_timestamp=parent_timestamp,
                init_source=init_source,
                expires_at=UNSET if lifetime is None else utc_now() + lifetime,
                endpoints=endpoints,
            )

        async def finish(created: BranchCreated) -> BranchCreated:
            return await self._requester.waiter.finish(created, timeout)

        async def find() -> str | None:
            found = await self.list(project_id, search=own_name).collect()
            return next((branch.id for branch in found if branch.name == own_name), None)

        async def delete(branch_id: str) -> None:
            with suppress(NotFoundError):
                await self.delete(project_id, branch_id)

        return ephemeral_branch(create, finish, None if is_named else find, delete)
