"""A caller of the campaign: what it asks for, and what it gets."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Literal

import msgspec

from neonctl_async import (
    EndpointSpec,
    Hooks,
    NeonClient,
    PollPolicy,
    RateBudget,
    RequestSent,
    RetryPolicy,
    Timeout,
)
from neonctl_async.types import ApiKeyCreated, BranchCreated, ProjectCreated
from tests.faults.kinds import OVERSIZED

WAIT = 3.0
RETRY = RetryPolicy(attempts=4, initial=0.01, maximum=0.05, deadline=3.0)
BOUND = 2 * RETRY.deadline + WAIT
"""The longest that a call may take, in seconds: a 429 may hold back the ones after it for as long
as the policy's deadline."""

HUNG = 3 * BOUND
"""Seconds after which a call is given up, so that a campaign with one that hangs has an end. As
this is no exception of the library's, it is a violation."""

Kind = Literal["key", "revoked key", "project", "branch", "list"]
WEIGHTS: dict[Kind, int] = {"key": 30, "revoked key": 10, "project": 10, "branch": 35, "list": 15}
_requests: ContextVar[list[str]] = ContextVar("_requests")


class Outcome(msgspec.Struct, kw_only=True):
    """What a call was for, and what came of it.

    ``id`` is that of what was made, by a success or by what an error hands over; ``name`` that
    of what was asked for, the id of a key that was to be revoked.
    """

    kind: Kind
    name: str
    id: str | None = None
    operations: list[str] = []
    error: BaseException | None = None
    seconds: float = 0.0
    requests: list[str] = []


def client_of(base_url: str, key: str, ca_file: Path | None = None) -> NeonClient:
    """A client that gives up soon, and writes down which call each of its requests is for."""
    return NeonClient(
        key,
        base_url=base_url,
        timeout=Timeout(connect=1.0, read=1.0, total=1.5),
        retry=RETRY,
        budget=RateBudget.unlimited(),
        polling=PollPolicy(initial=0.02, maximum=0.2),
        hooks=[Hooks(on_request=_note)],
        max_response_bytes=OVERSIZED // 2,
        ca_file=ca_file,
    )


def _note(sent: RequestSent) -> None:
    _requests.get().append(sent.id)


class Caller:
    """Asks for one thing after another."""

    def __init__(
        self,
        name: str,
        neon: NeonClient,
        projects: list[str],
        seed: float,
        clock: Callable[[], float],
    ) -> None:
        self._clock = clock
        self._name = name
        self._calls = 0
        self._neon = neon
        self._projects = projects
        self._chance = random.Random(f"{seed} {name}")
        self._keys: list[str] = []

    async def call(self) -> Outcome:
        """One call of any kind."""
        [kind] = self._chance.choices(list(WEIGHTS), list(WEIGHTS.values()))
        if kind == "revoked key" and not self._keys:
            kind = "key"
        self._calls += 1
        outcome = Outcome(kind=kind, name=f"{self._name}-{self._calls}")
        await attempt(outcome, self._begin(outcome), self._clock)
        if kind == "key" and outcome.id is not None:
            self._keys.append(outcome.id)
        return outcome

    def _begin(self, outcome: Outcome) -> Awaitable[object]:
        project_id = self._chance.choice(self._projects)
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
                    project_id, name=outcome.name, endpoints=endpoints, wait=WAIT
                )
            case "list":
                return self._neon.operations.list(project_id, limit=20).collect(limit=50)


async def attempt(outcome: Outcome, call: Awaitable[object], clock: Callable[[], float]) -> None:
    """Await ``call``, and write down what comes of it."""
    _requests.set(outcome.requests)
    began = clock()
    [result] = await asyncio.gather(asyncio.wait_for(call, HUNG), return_exceptions=True)
    outcome.seconds = clock() - began
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
            outcome.operations = [operation.id for operation in result.operations]
        case _:
            pass
