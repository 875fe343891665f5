"""The calls of a campaign: what was injected into them, and what each reported to its caller."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from typing import Literal

import msgspec

from neonctl_async import (
    Hooks,
    NeonError,
    Operation,
    RequestSent,
    ResponseReceived,
    RetryPolicy,
    StatusChanged,
    WaitEnded,
)
from neonctl_async.types import ApiKeyCreated, BranchCreated, Project, ProjectCreated, RoleUpdated
from tests.support.clock import now

RETRY = RetryPolicy(attempts=4, initial=0.01, maximum=0.05, deadline=3.0)


Kind = Literal[
    "key", "project", "branch", "role", "list", "name", "new name", "revoked key", "deleted branch"
]
DELETED: dict[Kind, Kind] = {"revoked key": "key", "deleted branch": "branch"}
"""The kinds of calls that delete, and the kinds of the objects."""


class Outcome(msgspec.Struct, kw_only=True):
    """A call and its outcome.

    ``name`` is the name of the requested object, or the id of an object to delete. ``id`` is the id
    of the created object, from the result or from the error's ``result``.
    """

    kind: Kind
    name: str
    timeout: float = 4.0
    """The timeout of a wait: more than the longest time for which an operation is missing."""
    project_id: str = ""
    computes: int = 0
    """The number of requested computes."""
    id: str | None = None
    token: str = ""
    """The created key."""
    operations: list[Operation] = []
    """The operations of the result, or of the error's ``result``."""
    error: BaseException | None = None
    seconds: float = 0.0
    """The seconds for which this process could run."""
    loop_seconds: float = 0.0
    """The seconds on the clock of the event loop, which suspensions advance."""
    requests: list[str] = []
    received: dict[str, float] = {}
    """The time of each response with status 200, in seconds before the end of the call."""
    changes: list[StatusChanged] = []
    """The records with a new status, and their earlier status."""
    wait: WaitEnded | None = None
    too_early: list[str] = []
    """The operations that the control plane had not reported as finished before a success."""

    @property
    def longest(self) -> float:
        """The longest time that the call may take. A 429 may delay it by the retry deadline."""
        return 2 * RETRY.deadline + self.timeout

    @property
    def is_late(self) -> bool:
        """True if the wait lasted until its timeout."""
        return self.wait is not None and self.wait.seconds > self.timeout - 0.1

    @property
    def maybe_executed(self) -> bool:
        """True if the error does not report that nothing was done."""
        return isinstance(self.error, NeonError) and self.error.maybe_delivered


class FaultLog:
    """The injected faults, the requests that met them, and the truth that clients were sent."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.by_request: dict[str, str] = {}
        """The fault by ``X-Request-ID``. A fault of the request hides that of a record."""
        self.unchanged: set[str] = set()
        """The requests that met no fault of a request."""
        self.rejected: dict[str, int] = {}
        """The error status by ``X-Request-ID`` that the control plane itself has responded with."""
        self.finished: set[str] = set()
        """The operations that the control plane has reported as finished."""
        self.failed: set[str] = set()
        """The operations that clients must take for failed."""
        self._terminal: dict[str, set[str]] = {}

    def add(self, request_id: str, fault: str) -> None:
        """Record that a request met a fault."""
        self.counts[fault] += 1
        self.by_request[request_id] = fault

    def add_record_fault(self, request_id: str, fault: str) -> None:
        """Record that a response contained a record with a fault, or lacked the record."""
        self.counts[fault] += 1
        self.by_request.setdefault(request_id, fault)

    def add_terminal_records(self, request_id: str, operations: Iterable[str]) -> None:
        """Record that a response contained true and terminal records of operations."""
        self._terminal[request_id] = set(operations)

    def reported(self, request_id: str, operation: str) -> bool:
        """Return whether an unchanged response contained a true and terminal record."""
        return request_id in self.unchanged and operation in self._terminal.get(request_id, ())


_current: ContextVar[Outcome] = ContextVar("_current")
_clock: ContextVar[Callable[[], float]] = ContextVar("_clock")


def _note_request(sent: RequestSent) -> None:
    _current.get().requests.append(sent.id)


def _note_response(response: ResponseReceived) -> None:
    if response.status == 200:
        _current.get().received[response.request.id] = _clock.get()()


def _note_status(change: StatusChanged) -> None:
    _current.get().changes.append(change)


def _note_wait(wait: WaitEnded) -> None:
    _current.get().wait = wait


NOTES = Hooks(
    on_request=_note_request,
    on_response=_note_response,
    on_status=_note_status,
    on_wait_ended=_note_wait,
)
"""Hooks of a client that record the events of each call in its outcome."""


async def run_call(
    outcome: Outcome, call: Awaitable[object], log: FaultLog, clock: Callable[[], float] = now
) -> None:
    """Await ``call`` and complete ``outcome``."""
    _current.set(outcome)
    _clock.set(clock)
    started, loop_started = clock(), now()
    # The TimeoutError is not the library's, so it counts as a violation.
    limited = asyncio.wait_for(call, 3 * outcome.longest)
    [result] = await asyncio.gather(limited, return_exceptions=True)
    ended = clock()
    outcome.seconds, outcome.loop_seconds = ended - started, now() - loop_started
    outcome.received = {id: ended - at for id, at in outcome.received.items()}
    if isinstance(result, BaseException):
        outcome.error = result
        result = getattr(result, "result", None)
    match result:
        case ApiKeyCreated():
            outcome.id, outcome.token = str(result.id), result.key.reveal()
        case ProjectCreated():
            outcome.id = result.project.id
        case Project():
            outcome.id = result.name
        case RoleUpdated():
            outcome.id, outcome.operations = result.role.name, result.operations
        case BranchCreated():
            outcome.id, outcome.operations = result.branch.id, result.operations
        case _:
            pass
    outcome.too_early = [one.id for one in outcome.operations if one.id not in log.finished]
