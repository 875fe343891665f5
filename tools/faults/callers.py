"""The callers of a campaign: their calls and the outcomes."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Literal, NamedTuple
from unittest import mock

import msgspec

from neonctl_async import (
    EndpointSpec,
    Hooks,
    NeonClient,
    Operation,
    PollPolicy,
    RateBudget,
    RequestSent,
    ResponseReceived,
    RetryPolicy,
    StatusChanged,
    Timeout,
    WaitEnded,
)
from neonctl_async.types import ApiKeyCreated, BranchCreated, ProjectCreated
from tests.support.clock import now
from tools.faults.faults import OVERSIZED

WAIT = 4.0
"""The timeout of a wait: more than the longest time for which an operation is missing."""
RETRY = RetryPolicy(attempts=4, initial=0.01, maximum=0.05, deadline=3.0)


class Limits(NamedTuple):
    """The limits of the calls of a caller, in seconds."""

    wait: float
    """The timeout of a wait."""
    longest: float
    """The longest time that a call may take."""

    @property
    def hang(self) -> float:
        """The time after which a call is given up, so that it cannot stop the campaign.

        The resulting exception is not the library's, so it counts as a violation.
        """
        return 3 * self.longest


SHORT = Limits(WAIT, 2 * RETRY.deadline + WAIT)
"""For calls that meet many faults. A 429 may delay later requests by the retry deadline."""
PATIENT = Limits(wait=300.0, longest=RetryPolicy().deadline)
"""For calls of clients with the default settings, which no fault may fail."""

Kind = Literal["key", "revoked key", "project", "branch", "list", "wait"]
WEIGHTS: dict[Kind, int] = {"key": 30, "revoked key": 10, "project": 10, "branch": 35, "list": 15}
_current: ContextVar["Outcome"] = ContextVar("_current")
_clock: ContextVar[Callable[[], float]] = ContextVar("_clock")


class Outcome(msgspec.Struct, kw_only=True):
    """A call and its outcome.

    ``name`` is the name of the requested object, or the id of a key to revoke. ``id`` is the id of
    the created object, from the result or from the error's ``result``.
    """

    kind: Kind
    name: str
    limits: Limits = SHORT
    project_id: str = ""
    id: str | None = None
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
    rejected: int = 0
    """The number of responses with status 429."""
    too_early: list[str] = []
    """The operations that the control plane had not reported as finished before a success."""

    @property
    def is_late(self) -> bool:
        """True if the wait lasted until its timeout."""
        return self.wait is not None and self.wait.seconds > self.limits.wait - 0.1


def client_of(base_url: str, key: str) -> NeonClient:
    """Return a client with short timeouts, which records the events of each call."""
    return NeonClient(
        key,
        base_url=base_url,
        timeout=Timeout(connect=1.0, read=1.0, total=1.5),
        retry=RETRY,
        budget=RateBudget.unlimited(),
        polling=PollPolicy(initial=0.02, maximum=0.2),
        hooks=[NOTES],
        max_response_bytes=OVERSIZED // 2,
    )


def short_pauses() -> AbstractContextManager[object]:
    """Let a 429 delay later requests by the retry deadline at most. A pause takes real time."""
    return mock.patch("neonctl_async.transport.pause.MAX_PAUSE", RETRY.deadline)


def _note_request(sent: RequestSent) -> None:
    _current.get().requests.append(sent.id)


def _note_response(response: ResponseReceived) -> None:
    if response.status == 200:
        _current.get().received[response.request.id] = _clock.get()()
    _current.get().rejected += response.status == 429


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


class Caller:
    """Makes one random call after another."""

    def __init__(
        self,
        name: str,
        neon: NeonClient,
        projects: list[str],
        seed: float,
        clock: Callable[[], float],
        *,
        limits: Limits = SHORT,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._name = name
        self._calls = 0
        self._neon = neon
        self._projects = projects
        self._chance = random.Random(f"{seed} {name}")
        self._keys: list[str] = []

    async def call(self) -> Outcome:
        """Make a call of a random kind."""
        [kind] = self._chance.choices(list(WEIGHTS), list(WEIGHTS.values()))
        if kind == "revoked key" and not self._keys:
            kind = "key"
        self._calls += 1
        outcome = Outcome(kind=kind, name=f"{self._name}-{self._calls}", limits=self._limits)
        await run_call(outcome, self._start(outcome), self._clock)
        if kind == "key" and outcome.id is not None:
            self._keys.append(outcome.id)
        return outcome

    def _start(self, outcome: Outcome) -> Awaitable[object]:
        project_id = outcome.project_id = self._chance.choice(self._projects)
        match outcome.kind:
            case "key":
                return self._neon.api_keys.create(key_name=outcome.name)
            case "revoked key":
                outcome.name = self._keys.pop()
                return self._neon.api_keys.revoke(int(outcome.name))
            case "project":
                return self._neon.projects.create(name=outcome.name)
            case "branch":
                endpoints = [EndpointSpec(type="read_write")] * self._chance.randrange(2)
                return self._neon.branches.create(
                    project_id, name=outcome.name, endpoints=endpoints, wait=self._limits.wait
                )
            case "list" | "wait":
                return self._neon.operations.list(project_id, limit=20).collect(limit=50)


async def run_call(outcome: Outcome, call: Awaitable[object], clock: Callable[[], float]) -> None:
    """Await ``call`` and complete ``outcome``."""
    _current.set(outcome)
    _clock.set(clock)
    started, loop_started = clock(), now()
    limited = asyncio.wait_for(call, outcome.limits.hang)
    [result] = await asyncio.gather(limited, return_exceptions=True)
    ended = clock()
    outcome.seconds, outcome.loop_seconds = ended - started, now() - loop_started
    outcome.received = {id: ended - at for id, at in outcome.received.items()}
    if isinstance(result, BaseException):
        outcome.error = result
        result = getattr(result, "result", None)
    match result:
        case ApiKeyCreated():
            outcome.id = str(result.id)
        case ProjectCreated():
            outcome.id = result.project.id
        case BranchCreated():
            outcome.id = result.branch.id
            outcome.operations = result.operations
        case _:
            pass
