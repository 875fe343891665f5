"""Operations: read, list, and wait."""

import builtins
from collections.abc import AsyncGenerator, Callable
from operator import attrgetter

from msgspec import UNSET, UnsetType

from neonctl_async.models.operations import Operation
from neonctl_async.pagination import Paginator
from neonctl_async.resources.base import Resource, check_within
from neonctl_async.waiting.scan import MAX_PAGE
from neonctl_async.waiting.source import (
    check_operation,
    operation_request,
    page_request,
)
from neonctl_async.waiting.targets import Waitable
from neonctl_async.waiting.waiter import DEFAULT_TIMEOUT


class Operations(Resource):
    """Operations: records of the work that Neon does on a project."""

    async def get(self, project_id: str, operation_id: str) -> Operation:
        """Return an operation.

        Raises InvalidResponseError if the response contains the record of another operation.
        """
        response = await self._runner.send(operation_request(project_id, operation_id))
        check_operation(project_id, operation_id, response.operation)
        return response.operation

    def list(self, project_id: str, *, limit: int | UnsetType = UNSET) -> Paginator[Operation]:
        """List the operations of a project, newest first.

        ``limit`` is the page size, 1 to 1000. Neon may remove operations after 6 months.
        """
        check_within("limit", limit, 1, MAX_PAGE)
        first = page_request(project_id, limit)
        return self._paginate(first, lambda page: page.operations, attrgetter("id"))

    async def wait(
        self,
        what: Waitable,
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
        fail_fast: bool = False,
        on_update: Callable[[Operation], object] | None = None,
        raise_on_failure: bool = True,
    ) -> builtins.list[Operation]:
        """Wait until all operations have reached a terminal state. Return their final records.

        ``what`` is an :class:`Operation`, an :class:`OperationRef`, any response with
        ``.operations``, or an iterable of these. The result contains one record for each item, in
        the order of ``what``, duplicates included. It is empty for a response without operations.

        ``timeout`` is in seconds; None waits without limit. ``on_update`` is called with each new
        record, including the first. The client polls all operations of a project together, and
        projects concurrently. Transient failures do not stop a wait, but 401 and 403 do, and so
        does a 404 that lasts longer than ``PollPolicy.missing_grace``.

        If an operation fails, raises OperationFailedError once all have finished or, with
        ``fail_fast``, at the first failure. With ``raise_on_failure=False``, never raises it.
        Raises WaitTimeoutError at the timeout, and TypeError or ValueError for an invalid ``what``
        or ``on_update``, such as a coroutine function.
        """
        return await self._runner.waiter.wait(
            what,
            timeout=timeout,
            fail_fast=fail_fast,
            on_update=on_update,
            raise_on_failure=raise_on_failure,
        )

    async def wait_for_project(
        self,
        project_id: str,
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
        fail_fast: bool = False,
        on_update: Callable[[Operation], object] | None = None,
        raise_on_failure: bool = True,
    ) -> builtins.list[Operation]:
        """Wait until a project has no pending operations. Return those that finished meanwhile.

        The wait covers operations that anyone starts, before or during the wait. It lists the 100
        newest operations, and further pages as long as the older half of a page contains pending
        operations. When they have finished, it lists operations again. The result is sorted by
        start time, oldest first, and empty if nothing was running.

        The options are those of :meth:`wait`. ``on_update`` is called for an operation that starts
        during the wait as soon as the earlier ones have finished.

        If an operation fails, raises OperationFailedError once all have finished. Raises
        StateTimeoutError at the timeout.
        """
        return await self._runner.states.wait_for_project(
            project_id,
            timeout=timeout,
            fail_fast=fail_fast,
            on_update=on_update,
            raise_on_failure=raise_on_failure,
        )

    def as_completed(
        self, what: Waitable, *, timeout: float | None = DEFAULT_TIMEOUT
    ) -> AsyncGenerator[Operation]:
        """Yield the final record of each operation once, in the order in which they finish.

        Failed operations are included. ``what`` is the same as in :meth:`wait`. ``timeout`` is in
        seconds and starts at the first iteration; WaitTimeoutError is raised when it expires. To
        leave the loop early, iterate within ``contextlib.aclosing``, which stops the polls that
        only this loop needs.
        """
        return self._runner.waiter.as_completed(what, timeout=timeout)

    def watch(
        self, what: Waitable, *, timeout: float | None = DEFAULT_TIMEOUT
    ) -> AsyncGenerator[Operation]:
        """Yield the first record of each operation and every later change, until all finish.

        A slow consumer receives the latest record of each operation and misses earlier ones.
        ``what`` and ``timeout`` are the same as in :meth:`as_completed`. To leave the loop early,
        iterate within ``contextlib.aclosing``.
        """
        return self._runner.waiter.watch(what, timeout=timeout)
