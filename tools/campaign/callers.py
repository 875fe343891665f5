"""The callers of a campaign of requests, which make one random call after another."""

import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import NamedTuple
from unittest import mock

from neonctl_async import EndpointSpec, NeonClient, PollPolicy, RateBudget, Timeout
from tools.campaign.faults import OVERSIZED
from tools.campaign.outcomes import DELETED, NOTES, RETRY, FaultLog, Kind, Outcome, run_call

WEIGHTS: dict[Kind, int] = {
    "key": 30,
    "revoked key": 10,
    "project": 10,
    "branch": 35,
    "deleted branch": 10,
    "role": 5,
    "list": 10,
    "name": 5,
    "new name": 5,
}


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


class Shared(NamedTuple):
    """A project that several callers change. Only the first of them renames it."""

    project_id: str
    branch_id: str
    """The first branch, in which roles are created."""


class Caller:
    """Makes random calls. Every name is unique; each object is deleted by its creator."""

    def __init__(
        self,
        number: int,
        neon: NeonClient,
        projects: list[Shared],
        chance: random.Random,
        log: FaultLog,
        clock: Callable[[], float],
    ) -> None:
        self._name = f"c{number}"
        self._neon = neon
        self._projects = projects
        self._renamed = projects[number] if number < len(projects) else None
        self._chance = chance
        self._log = log
        self._clock = clock
        self._calls = 0
        self._created: list[Outcome] = []
        """The objects that are left, as far as the caller knows."""

    async def call(self) -> Outcome:
        """Make a call of a random kind."""
        [kind] = self._chance.choices(list(WEIGHTS), list(WEIGHTS.values()))
        self._calls += 1
        outcome = Outcome(kind=kind, name=f"{self._name}-{self._calls}")
        await run_call(outcome, self._start(outcome), self._log, self._clock)
        if kind in DELETED.values() and outcome.id is not None:
            self._created.append(outcome)
        return outcome

    def _start(self, outcome: Outcome) -> Awaitable[object]:
        neon, project = self._neon, self._chance.choice(self._projects)
        if outcome.kind in DELETED:
            return self._delete(outcome)
        if outcome.kind in ("name", "new name") and self._renamed is not None:
            project = self._renamed
        id = outcome.project_id = project.project_id
        match outcome.kind:
            case "key":
                return neon.api_keys.create(key_name=outcome.name)
            case "project":
                return neon.projects.create(name=outcome.name)
            case "branch":
                outcome.computes = self._chance.randrange(2)
                endpoints = [EndpointSpec(type="read_write")] * outcome.computes
                return neon.branches.create(
                    id, name=outcome.name, endpoints=endpoints, wait=outcome.timeout
                )
            case "role":
                return neon.roles.create(
                    id, project.branch_id, name=outcome.name, wait=outcome.timeout
                )
            case "new name" if self._renamed is not None:
                return neon.projects.update(id, name=outcome.name)
            case "name" if self._renamed is not None:
                return neon.projects.get(id)
            case _:
                outcome.kind = "list"
                return neon.operations.list(id, limit=20).collect(limit=50)

    def _delete(self, outcome: Outcome) -> Awaitable[object]:
        left = [one for one in self._created if one.kind == DELETED[outcome.kind]]
        if not left:
            outcome.kind = DELETED[outcome.kind]
            return self._start(outcome)
        one = self._chance.choice(left)
        self._created.remove(one)
        assert one.id is not None
        outcome.name, outcome.project_id = one.id, one.project_id
        if outcome.kind == "revoked key":
            return self._neon.api_keys.revoke(int(one.id))
        return self._neon.branches.delete(one.project_id, one.id)
