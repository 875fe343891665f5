"""Waits for the state of a branch, a compute or a project."""

import copy
import math
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any, Generic, TypeVar

import anyio

from neonctl_async.clock import loop_time
from neonctl_async.config import PollPolicy
from neonctl_async.errors import NeonError, NotFoundError, StateTimeoutError
from neonctl_async.hooks import WaitEnded, WaitStarted
from neonctl_async.models.operations import Operation
from neonctl_async.transport.calls import running_loop
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.transport.encoding.paths import path_segment
from neonctl_async.waiting.source import OperationSource, is_transient, pause_after
from neonctl_async.waiting.states.followed import FollowedOperations
from neonctl_async.waiting.states.observed import (
    DELETED,
    ObservedState,
    check_state,
    closest,
    pending_of,
)
from neonctl_async.waiting.states.plan import StatePlan
from neonctl_async.waiting.states.project import ProjectWait
from neonctl_async.waiting.states.shared_reads import Reading, SharedRead, SharedReads
from neonctl_async.waiting.states.sources import StateSource, newest_operations, read_states
from neonctl_async.waiting.timing.pace import UNKNOWN_POLLS
from neonctl_async.waiting.timing.schedule import random_draw
from neonctl_async.waiting.waiter import (
    OnUpdate,
    Waiter,
    check_on_update,
    check_options,
    check_timeout,
)

RecordT = TypeVar("RecordT")

States = Mapping[str, ObservedState[RecordT] | NeonError]
"""By id: the states of objects of one kind and project, or why they could not be read."""


class StateWait(Generic[RecordT]):
    """One wait for a state: reads it, follows operations, and reads it again."""

    def __init__(
        self,
        source: StateSource[RecordT],
        plan: StatePlan[RecordT],
        followed: FollowedOperations,
        *,
        server_now: Callable[[], datetime],
        states: SharedRead[States[RecordT]],
        operations: SharedRead[list[Operation]],
        stretch: Callable[[], float],
    ) -> None:
        self._source = source
        self._plan = plan
        self._followed = followed
        self._states = states
        self._operations = operations
        self._server_now = server_now
        self._stretch = stretch
        self._processed = 0
        self._is_deleted = False
        self._last_error: NeonError | None = None

    async def run(self) -> RecordT | None:
        """Return the record as soon as the state is reached, or None for a deleted object."""
        self._process(await self._states.fresh())
        while not self.is_reached:
            await self._find_operations()
            self._process(await self._next_reading())
        return self.record

    @property
    def is_reached(self) -> bool:
        """True if the newest processed state is the wanted one."""
        return self._is_deleted or self._plan.is_reached

    @property
    def record(self) -> RecordT | None:
        """The record of the newest state; None for a deleted object."""
        observed = self._plan.observed
        return None if observed is None or self._plan.wanted == DELETED else observed.record

    def process_newest(self) -> None:
        """Process a state that arrived together with the deadline."""
        newest = self._states.newest
        if newest is not None and newest.number > self._processed:
            self._process(newest)

    def timeout_error(self, timeout: float) -> StateTimeoutError:
        """Return the error for a wait that did not reach the state within ``timeout`` seconds."""
        observed = self._plan.observed
        return StateTimeoutError(
            what=str(self._source),
            wanted=self._plan.wanted,
            state=None if observed is None else observed.state,
            pending_state=None if observed is None else observed.pending_state,
            timeout=timeout,
            settled=list(self._followed.settled.values()),
            pending=self._followed.pending,
            last_error=self._followed.last_error or self._last_error,
        )

    def _process(self, reading: Reading[States[RecordT]]) -> None:
        """Record a state. Raises the error of a request that cannot succeed later."""
        self._processed = reading.number
        found = reading.error or (reading.value or {}).get(self._source.id)
        if isinstance(found, ObservedState):
            self._plan.note_state(found, reading.finished_at, reading.seconds)
        elif isinstance(found, NotFoundError) and self._plan.wanted == DELETED:
            self._is_deleted = True
        elif found is not None:
            self._note_failure(found, reading.finished_at)

    async def _find_operations(self) -> None:
        """Follow the pending operations that belong to the object, if it may have new ones.

        While the rate budget is short, do not: another read of the state costs less.
        """
        observed = self._plan.observed
        if observed is None or not self._plan.needs_operations or self._stretch() > 1:
            return
        operations = observed.pending
        if operations is None:
            reading = await self._operations.fresh()
            if reading.error is not None:
                self._note_failure(reading.error, reading.finished_at)
            operations = reading.value
        if operations is not None:
            self._plan.needs_operations = False
            pending = pending_of(operations, self._server_now())
            found = closest(pending, lambda operation: self._source.rank(operation, observed))
            self._followed.follow(found, self._plan.last_read_at)

    async def _next_reading(self) -> Reading[States[RecordT]]:
        """Wait until the state may have changed, and return it."""
        is_following = bool(self._followed.pending)
        due = self._plan.next_read_at(
            random_draw(), is_following=is_following, stretch=self._stretch()
        )
        with anyio.CancelScope(deadline=due):
            if not is_following:
                return await self._states.arrival(self._processed)
            if await self._followed.wait_until_one_finishes():
                self._plan.note_finished_operation(loop_time())
                return await self._states.fresh()
        return await self._states.next(self._processed)

    def _note_failure(self, error: Exception, now: float) -> None:
        if not is_transient(error):
            # The same failure may end many waits: each raises its own copy.
            raise copy.copy(error) from error.__cause__
        self._last_error = error
        self._plan.note_failure(now, pause_after(error))


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
        self._states = SharedReads()
        self._lists = SharedReads()
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
        started = running_loop().time()
        followed = FollowedOperations(self._waiter.pollers)
        event = WaitStarted(operations=(), timeout=timeout, goal=f"{source} is {state}")
        self._dispatcher.wait_started(event)
        failure: NeonError | None = None
        try:
            return await self._run(source, state, timeout, followed)
        except NeonError as error:
            failure = error
            raise
        finally:
            ended = WaitEnded(
                wait=event,
                unsuccessful=followed.unsuccessful,
                pending=len(followed.pending),
                error=failure,
                seconds=loop_time() - started,
            )
            # Notify before awaiting: a second cancellation would skip the notification.
            self._dispatcher.wait_ended(ended)
            await followed.release()

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
        async with self._newest_operations(project_id) as operations:
            wait = ProjectWait(
                project_id,
                self._waiter,
                operations,
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
        await self._states.aclose()
        await self._lists.aclose()

    @asynccontextmanager
    async def _reads_of(
        self, source: StateSource[RecordT]
    ) -> AsyncGenerator[SharedRead[States[RecordT]]]:
        """Return the request that reads all objects of a kind and project that waits need."""
        key = f"{type(source).__name__} in {source.project_id}"
        needed: Counter[StateSource[RecordT]] = self._needed.setdefault(key, Counter())
        needed[source] += 1
        self._source.budget.note_wanted(key, UNKNOWN_POLLS)

        async def read() -> States[RecordT]:
            return await read_states(needed.keys(), self._source)

        try:
            async with self._states.use(key, read) as states:
                yield states
        finally:
            needed[source] -= 1
            if not needed[source]:
                del needed[source]
            if not needed and self._needed.get(key) is needed:
                del self._needed[key]
                self._source.budget.note_wanted(key, 0.0)

    def _newest_operations(
        self, project_id: str
    ) -> AbstractAsyncContextManager[SharedRead[list[Operation]]]:
        async def read() -> list[Operation]:
            operations = await newest_operations(project_id, self._source)
            self._waiter.pollers.note_history(project_id, operations)
            return operations

        return self._lists.use(project_id, read)

    async def _run(
        self,
        source: StateSource[RecordT],
        state: str,
        timeout: float | None,
        followed: FollowedOperations,
    ) -> RecordT | None:
        deadline = math.inf if timeout is None else loop_time() + timeout
        plan = StatePlan[RecordT](state, self._policy, loop_time(), deadline)
        async with (
            self._reads_of(source) as states,
            self._newest_operations(source.project_id) as operations,
        ):
            wait = StateWait(
                source,
                plan,
                followed,
                server_now=self._source.server_now,
                states=states,
                operations=operations,
                stretch=self._waiter.pollers.stretch,
            )
            with anyio.CancelScope(deadline=deadline):
                return await wait.run()
            wait.process_newest()
            if not wait.is_reached:
                raise wait.timeout_error(timeout or 0.0)
            return wait.record
