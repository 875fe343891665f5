"""The final state of the control plane, and the outcomes that contradict it."""

from collections.abc import AsyncGenerator, Iterator
from urllib.parse import quote

from control_plane.tests.client import Http
from neonctl_async import NeonError, RateLimitedError
from tools.faults.callers import RETRY, Outcome
from tools.faults.log import FaultLog
from tools.faults.waits import wrong_waits

TOLERANCE = 5.0
"""The seconds by which a loaded machine may delay a call."""

MIN_SECONDS_OF_429 = RETRY.deadline / 3
"""The shortest time after which a call may give up because of 429 without ``Retry-After``."""


BACKGROUND_ACTIONS = frozenset({"check_availability", "suspend_compute"})
"""The actions that the control plane starts by itself, such as five minutes after a start."""


class FinalState:
    """All keys and projects, and the branches and operations of some projects."""

    def __init__(self) -> None:
        self.created: dict[tuple[str, str], list[str]] = {}
        """The ids of existing objects, by kind and name."""
        self.operations: dict[str, dict[str, str]] = {}
        """The records of operations, by id."""

    @classmethod
    async def read(cls, http: Http, projects: list[str]) -> "FinalState":
        """Read the state; ``projects`` are those in which branches were created."""
        state = cls()
        for key in await http.get("/api_keys"):
            state._add("key", key["name"], str(key["id"]))
        async for project in _all(http, "/projects?limit=400", "projects", "cursor"):
            state._add("project", project["name"], project["id"])
        for project_id in projects:
            of_project = f"/projects/{project_id}"
            async for branch in _all(http, f"{of_project}/branches?limit=400", "branches", "next"):
                state._add("branch", branch["name"], branch["id"])
            path = f"{of_project}/operations?limit=1000"
            async for operation in _all(http, path, "operations", "cursor"):
                state.operations[operation["id"]] = operation
        return state

    def _add(self, kind: str, name: str, id: str) -> None:
        self.created.setdefault((kind, name), []).append(id)

    def violations(self, outcomes: list[Outcome], log: FaultLog) -> Iterator[str]:
        """Yield a description of each wrong outcome."""
        revoked = {one.name for one in outcomes if one.kind == "revoked key"}
        for one in outcomes:
            for violation in (
                *self._wrong_results(one, revoked),
                *wrong_waits(one, log),
                *_wrong_errors(one),
            ):
                yield f"{one.kind} {one.name}: {violation} (the call raised {one.error!r})"

    def _wrong_results(self, one: Outcome, revoked: set[str]) -> Iterator[str]:
        if one.kind == "list":
            return
        if one.kind == "revoked key":
            yield from self._wrong_revocations(one)
            return
        existing = self.created.get((one.kind, one.name), [])
        if one.id in revoked and one.id not in existing:
            existing = [*existing, one.id]
        if len(existing) > 1:
            yield f"created {len(existing)} times"
        if one.id is not None:
            if existing != [one.id]:
                yield f"the call returned {one.id}, but {existing} exist"
        elif existing and not _possibly_executed(one):
            yield "reported as not created, but it exists"
        if one.kind == "branch" and one.id is not None:
            yield from self._wrong_operations(one)

    def _wrong_operations(self, one: Outcome) -> Iterator[str]:
        started = {
            id
            for id, record in self.operations.items()
            if record["branch_id"] == one.id and record["action"] not in BACKGROUND_ACTIONS
        }
        if (returned := {operation.id for operation in one.operations}) != started:
            yield f"the result contains the operations {returned} instead of {started}"
        if {operation.project_id for operation in one.operations} != {one.project_id}:
            yield "the result contains an operation of another project"
        if one.error is None and {self.operations[id]["status"] for id in started} - {"finished"}:
            yield "the wait returned, but an operation is not finished"

    def _wrong_revocations(self, one: Outcome) -> Iterator[str]:
        exists = any(one.name in ids for (kind, _), ids in self.created.items() if kind == "key")
        if one.error is None and exists:
            yield "reported as revoked, but it exists"
        if one.error is not None and not exists and not _possibly_executed(one):
            yield "reported as not revoked, but it is"


def _possibly_executed(one: Outcome) -> bool:
    return isinstance(one.error, NeonError) and one.error.maybe_delivered


def _wrong_errors(one: Outcome) -> Iterator[str]:
    if one.error is not None and not isinstance(one.error, NeonError):
        yield "the exception is not the library's"
    if (
        isinstance(one.error, RateLimitedError)
        and not one.error.retry_after
        and one.loop_seconds < MIN_SECONDS_OF_429
    ):
        yield f"the call gave up after {one.loop_seconds:.1f} s of 429"
    if one.seconds > one.limits.longest + TOLERANCE:
        yield f"the call took {one.seconds:.1f} s"


async def _all(
    http: Http, path: str, records: str, cursor_name: str
) -> AsyncGenerator[dict[str, str]]:
    """Yield every record of a list."""
    cursor: str | None = ""
    while cursor is not None:
        page = await http.get(f"{path}&cursor={quote(cursor, safe='')}" if cursor else path)
        for record in page[records]:
            yield record
        cursor = page.get("pagination", {}).get(cursor_name) if page[records] else None
