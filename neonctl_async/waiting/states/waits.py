"""Waits for the state of a branch, a compute or a project: read, wait, and read again."""

import copy
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

from neonctl_async.clock import loop_time
from neonctl_async.config import PollPolicy
from neonctl_async.errors import NeonError, NotFoundError, StateTimeoutError
from neonctl_async.hooks import WaitEnded, WaitStarted
from neonctl_async.models.operations import Operation
from neonctl_async.transport.calls import Deadline
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.transport.encoding import path_segment
from neonctl_async.waiting.source import OperationSource, is_transient, pause_after
from neonctl_async.waiting.states.project import ProjectWait
from neonctl_async.waiting.states.shared_reads import Reading, SharedRead, SharedReads
from neonctl_async.waiting.states.sources import (
    DELETED,
    ObservedState,
    StateSource,
    check_state,
    read_states,
)
from neonctl_async.waiting.timing import schedule
from neonctl_async.waiting.timing.pace import UNKNOWN_POLLS
from neonctl_async.waiting.waiter import (
    OnUpdate,
    Waiter,
    check_on_update,
    check_options,
    check_timeout,
)

RecordT = TypeVar("RecordT")

States = Mapping[str, ObservedState[RecordT] | NeonError]
"""The state, or the error of reading it, of each object of one kind and project, by id."""

LAST_READ_MARGIN = 0.05
"""The shortest time from the last read to the deadline, in seconds."""


class StateProgress(Generic[RecordT]):
    """What one wait has read, and when it reads again. Pure: times are passed in, in seconds."""

    def __init__(
        self, source: StateSource[RecordT], wanted: str, policy: PollPolicy, now: float
    ) -> None:
        self.observed: ObservedState[RecordT] | None = None
        """The latest state, or None before the first result."""
        self.is_reached: bool = False
        self.last_error: NeonError | None = None
        self.number: int = 0
        """The number of the latest reading."""
        self._source = source
        self._wanted = wanted
        self._policy = policy
        self._growing_since = now
        self._read_at = now
        self._seconds = 0.0
        self._not_before = now

    @property
    def record(self) -> RecordT | None:
        """The record of the latest state; None for a deleted object."""
        return self.observed.record if self.observed and self._wanted != DELETED else None

    def note(self, reading: Reading[States[RecordT]]) -> None:
        """Record a result. Raises the error of a request that cannot succeed later."""
        self.number = reading.number
        found = reading.error or (reading.value or {}).get(self._source.id)
        if isinstance(found, NotFoundError) and self._wanted == DELETED:
            self.is_reached = True
        elif isinstance(found, ObservedState):
            before, self.observed = self.observed, found
            self.is_reached = found.is_steady(self._wanted)
            self._read_at, self._seconds = reading.finished_at, reading.seconds
            if before is None or not found.has_same_state(before):
                self._growing_since = reading.finished_at
        elif isinstance(found, Exception) and is_transient(found):
            self.last_error = found
            self._read_at = reading.finished_at
            self._not_before = max(self._not_before, self._read_at + pause_after(found))
        elif found is not None:
            # The same failure may end many waits: each raises its own copy.
            raise copy.copy(found) from found.__cause__

    def next_read_at(self, deadline: float, stretch: float, draw: float) -> float:
        """Return when to read again: after growing delays, which start over after each change.

        ``stretch`` is the factor by which the rate budget delays polls, and ``draw`` is a random
        number from 0 to 1. The last read comes shortly before the deadline.
        """
        delay = schedule.growing_delay(self._policy, self._read_at - self._growing_since, draw)
        if not schedule.is_constant(self._policy):
            # Squared, because a read shows one project. A wait for operations often needs fewer
            # reads.
            delay = min(
                stretch * max(stretch, 1.0) * delay, max(stretch, 1.0) * self._policy.maximum
            )
        due = self._read_at + delay
        last = deadline - max(2 * self._seconds, LAST_READ_MARGIN)
        if self._read_at < last < due:
            due = last
        return max(due, self._not_before)

    def timeout_error(self, timeout: float) -> StateTimeoutError:
        """Return the error for a wait that did not reach the state within ``timeout`` seconds."""
        observed = self.observed
        return StateTimeoutError(
            what=str(self._source),
            wanted=self._wanted,
            state=None if observed is None else observed.state,
            pending_state=None if observed is None else observed.pending_state,
            timeout=timeout,
            settled=[],
            pending=[],
            last_error=self.last_error,
        )


class StateWaits:
    """Runs all waits for states of one client.

    Waits for objects of one kind and project share their requests.
    """

    def __init__(
        self,
        source: OperationSource,
        policy: PollPolicy,
        waiter: Waiter,
        dispatcher: HookDispatcher,
    ) -> None:
        self._reads = SharedReads()
        self._source = source
        self._policy = policy
        self._waiter = waiter
        self._dispatcher = dispatcher
        self._needed: dict[str, Counter[StateSource[Any]]] = {}
        """The objects of each kind and project, with the number of their waits."""

    async def wait_for(
        self, source: StateSource[RecordT], state: str, timeout: float | None
    ) -> RecordT | None:
        """Wait until an object is in a state. Return its record, or None if it is deleted.

        Raises StateTimeoutError at the timeout, and NotFoundError if the object does not exist and
        ``state`` is not ``deleted``.
        """
        check_state(state)
        check_timeout(timeout)
        return await self.wait_until(source, state, Deadline(timeout))

    async def wait_until(
        self, source: StateSource[RecordT], state: str, deadline: Deadline
    ) -> RecordT | None:
        """See :meth:`wait_for`."""
        started = loop_time()
        event = WaitStarted(operations=(), timeout=deadline.timeout, goal=f"{source} is {state}")
        self._dispatcher.wait_started(event)
        progress = StateProgress(source, state, self._policy, started)
        failure: NeonError | None = None
        try:
            await self._run(progress, source, deadline)
        except NeonError as error:
            failure = error
            raise
        finally:
            seconds = loop_time() - started
            ended = WaitEnded(wait=event, unsuccessful=0, pending=0, error=failure, seconds=seconds)
            self._dispatcher.wait_ended(ended)
        return progress.record

    async def wait_for_project(
        self,
        project_id: str,
        *,
        timeout: float | None,
        fail_fast: bool,
        on_update: OnUpdate | None,
        raise_on_failure: bool,
    ) -> list[Operation]:
        """See ``Operations.wait_for_project``."""
        path_segment("project_id", project_id)
        check_timeout(timeout)
        check_on_update(on_update)
        check_options(fail_fast=fail_fast, raise_on_failure=raise_on_failure)
        wait = ProjectWait(
            project_id,
            self._waiter,
            self._source,
            self._policy,
            fail_fast=fail_fast,
            on_update=on_update,
        )
        await wait.run(timeout)
        failure = wait.failure() if raise_on_failure else None
        if failure is not None:
            raise failure
        return wait.progress.results()

    async def aclose(self) -> None:
        """End all waits with ClientClosedError."""
        await self._reads.aclose()

    async def _run(
        self,
        progress: StateProgress[RecordT],
        source: StateSource[RecordT],
        deadline: Deadline,
    ) -> None:
        """Read the state until the object has reached the wanted state, or until the deadline.

        If the deadline is extended, read the state one last time.
        """
        async with self._reads_of(source) as reads:
            with deadline.scope():
                is_last = deadline.is_extended
                progress.note(await reads.fresh())
                while not (progress.is_reached or is_last):
                    is_last = deadline.is_extended
                    if is_last:
                        progress.note(await reads.fresh())
                        continue
                    stretch, draw = self._waiter.pollers.stretch(), schedule.random_draw()
                    due = progress.next_read_at(deadline.at, stretch, draw)
                    progress.note(await reads.next(progress.number, due))
        if not progress.is_reached:
            raise progress.timeout_error(deadline.timeout or 0.0)

    @asynccontextmanager
    async def _reads_of(
        self, source: StateSource[RecordT]
    ) -> AsyncGenerator[SharedRead[States[RecordT]]]:
        """Yield the shared request that reads all needed objects of one kind and project."""
        key = f"{type(source).__name__} in {source.project_id}"
        needed: Counter[StateSource[RecordT]] = self._needed.setdefault(key, Counter())
        needed[source] += 1
        self._source.budget.note_wanted(key, UNKNOWN_POLLS)

        async def read() -> States[RecordT]:
            return await read_states(needed.keys(), self._source)

        try:
            async with self._reads.use(key, read) as reads:
                yield reads
        finally:
            needed[source] -= 1
            if not needed[source]:
                del needed[source]
            if not needed and self._needed.get(key) is needed:
                del self._needed[key]
                self._source.budget.note_wanted(key, 0.0)
