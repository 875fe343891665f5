"""The methods wait, as_completed and watch: three views of one stream of changes.

The ``wait=`` parameter of calls that start operations takes :class:`WaitOptions`.
"""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Literal, TypeAlias, TypeVar

import anyio
import msgspec

from neonctl_async._internal import is_coroutine_function, shorten
from neonctl_async.clock import loop_time
from neonctl_async.config import PollPolicy
from neonctl_async.errors import NeonError, OperationFailedError, WaitTimeoutError
from neonctl_async.hooks import WaitEnded, WaitStarted
from neonctl_async.models.operations import Operation, OperationsResponse
from neonctl_async.transport.calls import LATE_SECONDS, running_loop
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.waiting.poller import PollerRegistry
from neonctl_async.waiting.source import POLL_TIMEOUT, OperationSource
from neonctl_async.waiting.targets import Waitable, targets_of
from neonctl_async.waiting.tracked import OperationWait, Outcome, TrackedOperation

DEFAULT_TIMEOUT = 300.0
"""The default timeout of a wait, in seconds. Neon's own tools use the same timeout."""

OperationsResponseT = TypeVar("OperationsResponseT", bound=OperationsResponse)
OnUpdate = Callable[[Operation], object]


class WaitOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a ``wait=`` parameter: ``wait=WaitOptions(timeout=60.0, connect=True)``.

    Raises TypeError or ValueError for an invalid option.
    """

    timeout: float | None = DEFAULT_TIMEOUT
    """How long to wait, in seconds, for the operations and the connections together. None means no
    limit."""
    connect: bool = False
    """True to wait until the computes accept connections once the operations have succeeded."""
    on_update: OnUpdate | None = None
    """A plain function that is called with the first record of each operation, and with its record
    after every change."""

    def __post_init__(self) -> None:
        check_timeout(self.timeout)
        check_on_update(self.on_update)
        if not isinstance(self.connect, bool):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
            raise TypeError(f"connect is {shorten(self.connect)}: expected True or False")


Wait: TypeAlias = bool | float | Literal["connect"] | WaitOptions
"""The type of ``wait=``: ``True`` for the default options, a number of seconds for another timeout,
and ``"connect"`` for ``WaitOptions(connect=True)``. ``False`` does not wait."""


def wait_options(wait: Wait) -> WaitOptions | None:
    """Return the options of a ``wait=`` argument, or None for False.

    Raises TypeError or ValueError for an invalid argument.
    """
    if isinstance(wait, WaitOptions):
        return wait
    if isinstance(wait, bool):
        return WaitOptions() if wait else None
    if isinstance(wait, int | float):
        check_timeout(wait, "wait")
        return WaitOptions(timeout=wait)
    if wait == "connect":  # pyright: ignore[reportUnnecessaryComparison] - callers without a type checker
        return WaitOptions(connect=True)
    raise TypeError(
        f"wait is {shorten(wait)}: expected True, False, a number of seconds, 'connect' or "
        "WaitOptions(...)"
    )


class Waiter:
    """Runs all waits of one client on shared pollers."""

    def __init__(
        self,
        source: OperationSource,
        policy: PollPolicy,
        dispatcher: HookDispatcher,
    ) -> None:
        self._pollers = PollerRegistry(source, policy, dispatcher)
        self._dispatcher = dispatcher
        self._failed_grace = policy.failed_grace
        self._source = source

    @property
    def pollers(self) -> PollerRegistry:
        """The pollers that all waits share."""
        return self._pollers

    def server_now(self) -> datetime:
        """Return the time on Neon's clock, with which ``retry_at`` is compared."""
        return self._source.server_now()

    async def wait(
        self,
        what: Waitable,
        *,
        timeout: float | None,
        fail_fast: bool,
        on_update: OnUpdate | None,
        raise_on_failure: bool,
    ) -> list[Operation]:
        """See ``Operations.wait``."""
        check_timeout(timeout)
        check_options(fail_fast=fail_fast, raise_on_failure=raise_on_failure)
        check_on_update(on_update)
        wait = OperationWait(targets_of(what), timeout=timeout)
        await self._follow(wait, fail_fast=fail_fast, on_update=on_update)
        if raise_on_failure:
            _raise_for_failures(wait)
        return wait.newest()

    async def wait_for_end(self, operations: Sequence[Operation]) -> None:
        """Wait until all operations have reached a terminal state, successful or not."""
        await self._follow(OperationWait(operations))

    async def finish(
        self,
        response: OperationsResponseT,
        timeout: float | None,
        on_update: OnUpdate | None = None,
    ) -> OperationsResponseT:
        """Wait for the operations of ``response``, and return it with their final records.

        If the wait fails, the ``result`` of its error is ``response`` with the latest records. An
        exception raised by ``on_update`` gets a note that lists the operations.
        """
        wait = OperationWait(response.operations, timeout=timeout, are_new=True)
        try:
            await self._follow(wait, on_update=on_update)
            _raise_for_failures(wait)
        except NeonError as error:
            error.result = msgspec.structs.replace(response, operations=wait.newest())
            error.maybe_delivered = True
            raise
        except Exception as error:
            error.add_note(_executed(wait.newest()))
            raise
        return msgspec.structs.replace(response, operations=wait.newest())

    def as_completed(self, what: Waitable, *, timeout: float | None) -> AsyncGenerator[Operation]:
        """See ``Operations.as_completed``."""
        check_timeout(timeout)
        wait = OperationWait(targets_of(what), timeout=timeout)
        return self._operations(wait, only_settled=True)

    def watch(self, what: Waitable, *, timeout: float | None) -> AsyncGenerator[Operation]:
        """See ``Operations.watch``."""
        check_timeout(timeout)
        return self._operations(
            OperationWait(targets_of(what), timeout=timeout), only_settled=False
        )

    async def aclose(self) -> None:
        """End all waits with ClientClosedError."""
        await self._pollers.aclose()

    async def _follow(
        self,
        wait: OperationWait,
        *,
        fail_fast: bool = False,
        on_update: OnUpdate | None = None,
    ) -> None:
        reports_each = fail_fast or on_update is not None
        changing = self._changes(wait, reports_each=reports_each)
        async with aclosing(changing) as changes:
            async for changed in changes:
                if on_update is not None and wait.report(changed):
                    notify(on_update, _record(changed))
                if fail_fast and wait.has_failed(changed.ref):
                    return

    async def _operations(
        self, wait: OperationWait, *, only_settled: bool
    ) -> AsyncGenerator[Operation]:
        async with aclosing(self._changes(wait, reports_each=True)) as changes:
            async for changed in changes:
                is_new = wait.is_settled(changed.ref) if only_settled else wait.report(changed)
                if is_new:
                    yield _record(changed)

    async def _changes(
        self, wait: OperationWait, *, reports_each: bool
    ) -> AsyncGenerator[TrackedOperation]:
        """Yield each operation with its first record and after each change, until all are finished.

        Raises WaitTimeoutError at the deadline, and the failure of a poll that ends the wait. At
        the deadline, failures that no later poll has confirmed are final.
        """
        started = running_loop().time()
        wait.start(started, reports_each=reports_each)
        ready = asyncio.Event()
        wait.on_ready = ready.set
        event = WaitStarted(operations=tuple(wait.refs), timeout=wait.timeout)
        self._dispatcher.wait_started(event)
        failure: NeonError | None = None
        try:
            self._start(wait)
            while not wait.is_complete and (changed := await self._next(wait, ready)):
                wait.note(changed)
                yield changed
            for failed in wait.settle_failures():
                yield failed
            if not wait.is_complete:
                raise _timeout_error(wait)
        except NeonError as error:
            failure = error
            raise
        finally:
            # Notify before awaiting: a second cancellation would skip the notification.
            self._dispatcher.wait_ended(_ended(event, wait, failure, started))
            await self._pollers.release(wait)

    def _start(self, wait: OperationWait) -> None:
        """Deliver the operations that are in a terminal state, and track the others."""
        now = self._source.server_now()
        for operation in wait:
            record = operation.record
            if record is not None:
                operation.outcome = wait.first_outcome(record, now, self._failed_grace)
            if operation.outcome is Outcome.PENDING:
                wait.track(self._pollers.add(operation.ref, record, wait))
            else:
                wait.deliver(operation)

    async def _next(self, wait: OperationWait, ready: asyncio.Event) -> TrackedOperation | None:
        """Return the next changed operation; after the deadline, the next finished one, or None.

        If the event loop was blocked at the deadline, or the machine was asleep, one more poll
        comes first.
        """
        while True:
            changed = wait.take()
            is_late = loop_time() > wait.deadline
            if changed is not None:
                if not (is_late or wait.is_extended) or changed.outcome is not Outcome.PENDING:
                    return changed
                continue
            if not (is_late or wait.is_over):
                ready.clear()
                with anyio.CancelScope(deadline=wait.deadline) as scope:
                    await ready.wait()
                if not scope.cancelled_caught:
                    continue
            if not self._extend(wait):
                return None

    def _extend(self, wait: OperationWait) -> bool:
        """Extend a wait for one more poll if its task was resumed late. Return whether it was."""
        now = loop_time()
        if now <= wait.deadline + LATE_SECONDS or wait.is_extended or wait.timeout == 0:
            return False
        wait.extend(wait.unsettled(), now, POLL_TIMEOUT)
        self._pollers.require(wait)
        return True


def _record(operation: TrackedOperation) -> Operation:
    """Return the record of a changed operation."""
    assert operation.record is not None
    return operation.record


def _ended(
    event: WaitStarted, wait: OperationWait, error: NeonError | None, started: float
) -> WaitEnded:
    return WaitEnded(
        wait=event,
        unsuccessful=len(wait.settled(Outcome.UNSUCCESSFUL)),
        pending=len(wait.pending()),
        error=error,
        seconds=loop_time() - started,
    )


def _timeout_error(wait: OperationWait) -> WaitTimeoutError:
    return WaitTimeoutError(
        timeout=wait.timeout or 0.0,
        settled=wait.settled(),
        pending=wait.pending(),
        last_error=wait.last_error,
    )


def _raise_for_failures(wait: OperationWait) -> None:
    failed = wait.settled(Outcome.UNSUCCESSFUL)
    if failed:
        raise OperationFailedError(failed=failed, settled=wait.settled(), pending=wait.pending())


def _executed(operations: Sequence[Operation]) -> str:
    """Return the note for an exception of ``on_update``, raised in place of the call's response."""
    records = (
        f"{operation.action} {operation.id} of branch {operation.branch_id} in "
        f"{operation.project_id} is {operation.status}"
        for operation in operations
    )
    return f"Neon has executed the request: {'; '.join(records)}"


def check_options(*, fail_fast: bool, raise_on_failure: bool) -> None:
    """Raise ValueError for options that contradict each other."""
    if fail_fast and not raise_on_failure:
        raise ValueError(
            "fail_fast=True and raise_on_failure=False contradict each other: leave one out"
        )


def check_timeout(timeout: float | None, name: str = "timeout") -> None:
    """Raise TypeError or ValueError unless ``timeout`` is None or at least 0 seconds."""
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
        raise TypeError(f"{name} is {shorten(timeout)}: expected a number of seconds, or None")
    if not timeout >= 0:
        raise ValueError(f"{name} is {timeout}: expected 0 or more seconds")


def check_on_update(on_update: OnUpdate | None) -> None:
    """Raise TypeError unless ``on_update`` is None, or callable and not a coroutine function."""
    if on_update is None:
        return
    if not callable(on_update):
        raise TypeError(f"on_update is {on_update!r}: expected a function that takes an Operation")
    if is_coroutine_function(on_update):
        raise TypeError(f"on_update is {on_update!r}, a coroutine function: {_PLAIN_FUNCTION}")


def notify(on_update: OnUpdate, operation: Operation) -> None:
    """Call ``on_update``. Raise TypeError if it returns an awaitable."""
    result = on_update(operation)
    if not inspect.isawaitable(result):
        return
    if inspect.iscoroutine(result):
        result.close()  # otherwise Python warns that it was never awaited
    raise TypeError(
        f"on_update is {on_update!r} and returned {type(result).__name__}: {_PLAIN_FUNCTION}"
    )


_PLAIN_FUNCTION = (
    "expected a plain function; to await something for each change, "
    "iterate with `async for operation in neon.operations.watch(...)`"
)
