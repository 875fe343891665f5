"""The wait until nothing runs in a project."""

import asyncio
import copy
import math
import random
from collections.abc import Iterable, Sequence
from itertools import takewhile

import anyio

from neonctl_async.clock import utc_now
from neonctl_async.config import PollPolicy
from neonctl_async.errors import (
    APIError,
    NeonError,
    OperationFailedError,
    StateTimeoutError,
    WaitError,
    WaitTimeoutError,
)
from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.waiting import schedule
from neonctl_async.waiting.source import is_transient
from neonctl_async.waiting.states.observed import pending_of
from neonctl_async.waiting.states.plan import MAX_PAUSE
from neonctl_async.waiting.states.shared_reads import SharedRead
from neonctl_async.waiting.status import Outcome, outcome
from neonctl_async.waiting.waiter import OnUpdate, Waiter


class ProjectProgress:
    """The operations of a wait until nothing runs. Pure: no I/O, no event loop."""

    def __init__(self) -> None:
        self.settled: dict[OperationRef, Operation] = {}
        self.pending: Sequence[Operation | OperationRef] = []
        self._listed: set[str] | None = None

    def note_list(self, newest: Sequence[Operation]) -> list[Operation]:
        """Record a list of the newest operations, newest first.

        Return the operations that started and finished since the list before.
        """
        now = utc_now()
        listed = self._listed
        self._listed = {operation.id for operation in newest}
        self.pending = pending_of(newest, now)
        if listed is None:
            return []
        started = takewhile(lambda operation: operation.id not in listed, newest)
        missed = [each for each in started if outcome(each, now) is not Outcome.PENDING]
        self.note_settled(missed)
        return missed

    def note_settled(self, operations: Iterable[Operation]) -> None:
        """Record operations that have reached a terminal state."""
        self.settled |= {operation.ref: operation for operation in operations}

    def results(self) -> list[Operation]:
        """Return the final records, oldest first."""
        return sorted(self.settled.values(), key=lambda operation: operation.created_at)

    def failure(self) -> OperationFailedError | None:
        """Return the error for the unsuccessful operations, None if all were successful."""
        results, now = self.results(), utc_now()
        failed = [each for each in results if outcome(each, now) is Outcome.UNSUCCESSFUL]
        if not failed:
            return None
        return OperationFailedError(failed=failed, settled=results, pending=self.pending)


class ProjectWait:
    """One wait until nothing runs: lists the operations, waits for them, and lists again."""

    def __init__(
        self,
        project_id: str,
        waiter: Waiter,
        operations: SharedRead[list[Operation]],
        policy: PollPolicy,
        *,
        fail_fast: bool,
        on_update: OnUpdate | None,
    ) -> None:
        self.progress = ProjectProgress()
        self._project_id = project_id
        self._waiter = waiter
        self._operations = operations
        self._policy = policy
        self._fail_fast = fail_fast
        self._on_update = on_update
        self._last_error: NeonError | None = None

    async def run(self, timeout: float | None) -> None:
        """Return when nothing runs. With ``fail_fast``, return after the first failure.

        Raises StateTimeoutError at the timeout.
        """
        deadline = math.inf if timeout is None else _time() + timeout
        try:
            while not self._has_failed_fast() and await self._list(deadline):
                await self._finish(deadline)
        except WaitTimeoutError as error:
            raise StateTimeoutError(
                what=f"project {self._project_id}",
                wanted="idle",
                state="busy" if self.progress.pending else None,
                pending_state=None,
                timeout=timeout or 0.0,
                settled=self.progress.results(),
                pending=self.progress.pending,
                last_error=error.last_error or self._last_error,
            ) from None

    def _has_failed_fast(self) -> bool:
        return self._fail_fast and self.progress.failure() is not None

    async def _list(self, deadline: float) -> bool:
        """List the newest operations. Return whether the wait has to go on."""
        with anyio.CancelScope(deadline=deadline) as scope:
            missed = self.progress.note_list(await self._newest())
            if self._on_update is not None:
                for operation in missed:
                    self._on_update(operation)
        if scope.cancelled_caught:
            raise WaitTimeoutError(timeout=0.0, settled=[], pending=[], last_error=None)
        return bool(self.progress.pending) and not self._has_failed_fast()

    async def _newest(self) -> list[Operation]:
        """Return the newest operations. Repeat the request after transient failures."""
        started = _time()
        while True:
            reading = await self._operations.fresh()
            if reading.value is not None:
                return reading.value
            if reading.error is None or not is_transient(reading.error):
                raise copy.copy(reading.error or RuntimeError("a request without a result"))
            self._last_error = reading.error
            waited = reading.finished_at - started
            pause = schedule.delay(self._policy, waited, random.random())  # noqa: S311 - spreads the load, protects no secret
            if isinstance(reading.error, APIError) and reading.error.retry_after:
                pause = max(pause, min(reading.error.retry_after, MAX_PAUSE))
            with anyio.CancelScope(deadline=reading.finished_at + pause):
                await self._operations.after(reading.number)

    async def _finish(self, deadline: float) -> None:
        """Wait for the pending operations."""
        try:
            settled = await self._waiter.wait(
                self.progress.pending,
                timeout=None if deadline == math.inf else max(deadline - _time(), 0.0),
                fail_fast=self._fail_fast,
                on_update=self._on_update,
                raise_on_failure=self._fail_fast,
            )
        except WaitError as error:
            self.progress.note_settled(error.settled)
            self.progress.pending = error.pending
            if not isinstance(error, OperationFailedError):
                raise
        else:
            self.progress.note_settled(settled)


def _time() -> float:
    return asyncio.get_running_loop().time()
