"""The operations of a wait until nothing runs in a project. Pure: no I/O, no event loop."""

from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile

from neonctl_async.errors import OperationFailedError
from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.waiting.states.observed import pending_of
from neonctl_async.waiting.status import Outcome, is_new_failure, outcome


class ProjectProgress:
    """The operations of a wait until nothing runs. ``failed_grace`` is in seconds."""

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
