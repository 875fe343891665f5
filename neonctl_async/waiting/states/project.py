"""The wait until no operation is running in a project."""

from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile

import anyio

from neonctl_async.clock import loop_time
from neonctl_async.config import PollPolicy
from neonctl_async.errors import (
    NeonError,
    OperationFailedError,
    StateTimeoutError,
    WaitError,
    WaitTimeoutError,
)
from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.transport.calls import Deadline
from neonctl_async.waiting.source import OperationSource, is_transient, pause_after
from neonctl_async.waiting.states.sources import newest_operations, pending_of
from neonctl_async.waiting.timing import schedule
from neonctl_async.waiting.tracked import Outcome, is_new_failure, outcome
from neonctl_async.waiting.waiter import OnUpdate, Waiter, notify


class ProjectProgress:
    """Tracks the operations of a project until none is pending. It does no I/O.

    ``failed_grace`` is in seconds.
    """

    def __init__(self, failed_grace: float) -> None:
        self._failed_grace = failed_grace
        self.settled: dict[OperationRef, Operation] = {}
        self.pending: Sequence[Operation | OperationRef] = []
        self._listed: set[str] | None = None

    def note_list(self, newest: Sequence[Operation], now: datetime) -> list[Operation]:
        """Record a list of the newest operations, newest first, at the time ``now``.

        Return the operations that started and finished since the previous list, except those that
        Neon may retry, which count as pending.
        """
        listed = self._listed
        self._listed = {operation.id for operation in newest}
        self.pending = pending_of(newest, now)
        if listed is None:
            return []
        started = takewhile(lambda operation: operation.id not in listed, newest)
        missed = [each for each in started if outcome(each, now) is not Outcome.PENDING]
        failed = [each for each in missed if is_new_failure(each, now, self._failed_grace)]
        self.pending = [*self.pending, *failed]
        settled = [each for each in missed if each not in failed]
        self.note_settled(settled)
        return settled

    def note_settled(self, operations: Sequence[Operation]) -> None:
        """Record operations that have reached a terminal state, newest first."""
        self.settled |= {operation.ref: operation for operation in reversed(operations)}

    def results(self) -> list[Operation]:
        """Return the final records, oldest first."""
        return sorted(self.settled.values(), key=lambda operation: operation.created_at)

    def failure(self, now: datetime) -> OperationFailedError | None:
        """Return the error for the unsuccessful operations, or None if all were successful."""
        results = self.results()
        failed = [each for each in results if outcome(each, now) is Outcome.UNSUCCESSFUL]
        if not failed:
            return None
        return OperationFailedError(failed=failed, settled=results, pending=self.pending)


class ProjectWait:
    """One wait until nothing is running. It lists the operations and waits for them, in turn."""

    def __init__(
        self,
        project_id: str,
        waiter: Waiter,
        source: OperationSource,
        policy: PollPolicy,
        *,
        fail_fast: bool,
        on_update: OnUpdate | None,
    ) -> None:
        self.progress: ProjectProgress = ProjectProgress(policy.failed_grace)
        self._project_id = project_id
        self._waiter = waiter
        self._source = source
        self._policy = policy
        self._fail_fast = fail_fast
        self._on_update = on_update
        self._last_error: NeonError | None = None

    async def run(self, timeout: float | None) -> None:
        """Wait until nothing is running or, with ``fail_fast``, until the first failure.

        Raises StateTimeoutError at the timeout. If the deadline is extended, list the operations
        again.
        """
        deadline = Deadline(timeout)
        while not self._has_failed_fast():
            is_last = deadline.is_extended
            with deadline.scope() as scope:
                await self._list()
            if not scope.cancelled_caught:
                if not self.progress.pending or self._has_failed_fast():
                    return
                if deadline.is_extended and not is_last:
                    continue  # Neon may have answered before the loop was blocked
            if scope.cancelled_caught or not await self._finish(0.0 if is_last else deadline.left):
                raise self._timeout_error(timeout or 0.0)
            deadline.extend_if_missed()

    def failure(self) -> OperationFailedError | None:
        """Return the error for the unsuccessful operations, or None if all were successful."""
        return self.progress.failure(self._waiter.server_now())

    def _timeout_error(self, timeout: float) -> StateTimeoutError:
        return StateTimeoutError(
            what=f"project {self._project_id}",
            wanted="idle",
            state="busy" if self.progress.pending else None,
            pending_state=None,
            timeout=timeout,
            settled=self.progress.results(),
            pending=self.progress.pending,
            last_error=self._last_error,
        )

    def _has_failed_fast(self) -> bool:
        return self._fail_fast and self.failure() is not None

    async def _list(self) -> None:
        """List the newest operations. Repeat the request after transient failures."""
        started = loop_time()
        while True:
            try:
                newest = await newest_operations(self._project_id, self._source)
                break
            except NeonError as error:
                if not is_transient(error):
                    raise
                self._last_error = error
            waited, draw = loop_time() - started, schedule.random_draw()
            pause = schedule.growing_delay(self._policy, waited, draw)
            await anyio.sleep(max(pause, pause_after(self._last_error)))
        self._waiter.pollers.note_history(self._project_id, newest)
        for operation in self.progress.note_list(newest, self._waiter.server_now()):
            if self._on_update is not None:
                notify(self._on_update, operation)

    async def _finish(self, timeout: float | None) -> bool:
        """Wait for the pending operations. Return False at the deadline."""
        try:
            settled = await self._waiter.wait(
                self.progress.pending,
                timeout=timeout,
                fail_fast=self._fail_fast,
                on_update=self._on_update,
                raise_on_failure=self._fail_fast,
            )
        except WaitError as error:
            self.progress.note_settled(error.settled)
            self.progress.pending = error.pending
            if isinstance(error, WaitTimeoutError):
                self._last_error = error.last_error or self._last_error
                return False
            if not isinstance(error, OperationFailedError):
                raise
        else:
            self.progress.note_settled(settled)
        return True
