"""Operations: read, list, and wait."""

import builtins
from collections.abc import AsyncGenerator, Callable

from msgspec import UNSET, UnsetType

from neonctl_async.models.operations import Operation
from neonctl_async.pagination import Paginator
from neonctl_async.resources.base import Resource, check_within
from neonctl_async.waiting.source import MAX_PAGE, operation_request, page_request
from neonctl_async.waiting.targets import Waitable
from neonctl_async.waiting.waiter import DEFAULT_TIMEOUT


class Operations(Resource):
    """The platform's records of work it does, and the ways to wait for them."""

    async def get(self, project_id: str, operation_id: str) -> Operation:
        """One operation."""
        return (await self._requester.send(operation_request(project_id, operation_id))).operation

    def list(self, project_id: str, *, limit: int | UnsetType = UNSET) -> Paginator[Operation]:
        """The operations of a project, newest first.

        ``limit`` is the size of a page, 1 to 1000. Operations older than 6 months may be gone.
        """
        check_within("limit", limit, 1, MAX_PAGE)
        first = page_request(project_id, limit)
        return self._requester.paginate(
            first, lambda page: page.operations, lambda operation: operation.id
        )

    async def wait(
        self,
        what: Waitable,
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
        fail_fast: bool = False,
        on_update: Callable[[Operation], object] | None = None,
        raise_on_failure: bool = True,
    ) -> builtins.list[Operation]:
        """Wait until every operation of ``what`` has ended; the final records, in its order.

        ``what`` is an operation, an ``OperationRef``, any answer that has ``.operations``, or an
        iterable of these; duplicates are answered for each time. ``timeout`` is in seconds, None
        for no end. ``on_update`` is called with each new record that is seen, the first included.

        All operations of a project are polled together, projects at the same time. Failures of
        the network and of the platform that pass do not end a wait; 401, 403 and 404 do at once.

        Raises OperationFailedError when all have ended and some unsuccessfully (with
        ``fail_fast`` at the first; never with ``raise_on_failure=False``), WaitTimeoutError at
        the deadline, TypeError or ValueError for what holds no operations. An answer whose request
        started none has nothing to wait for: an empty list.
        """
        return await self._requester.waiter.wait(
            what,
            timeout=timeout,
            fail_fast=fail_fast,
            on_update=on_update,
            raise_on_failure=raise_on_failure,
        )

    def as_completed(
        self, what: Waitable, *, timeout: float | None = DEFAULT_TIMEOUT
    ) -> AsyncGenerator[Operation]:
        """The final record of each operation of ``what``, once, soonest first.

        Operations that ended unsuccessfully are yielded like the others. ``timeout``, in seconds,
        runs from the first iteration. Raises WaitTimeoutError at the deadline. To leave early,
        iterate within ``contextlib.aclosing``: what was polled for this alone is then dropped.
        """
        return self._requester.waiter.as_completed(what, timeout=timeout)

    def watch(
        self, what: Waitable, *, timeout: float | None = DEFAULT_TIMEOUT
    ) -> AsyncGenerator[Operation]:
        """Every change of the operations of ``what`` that is seen, the first states included.

        Ends when all have ended. A slow consumer gets the newest record of each operation and
        misses those in between. ``timeout`` and leaving early as in :meth:`as_completed`.
        """
        return self._requester.waiter.watch(what, timeout=timeout)
