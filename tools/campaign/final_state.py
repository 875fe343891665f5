"""The final state of the control plane, and the outcomes that contradict it."""

from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from typing import Any
from urllib.parse import quote

from control_plane.tests.client import Http
from neonctl_async import NeonError, RateLimitedError
from tools.campaign.outcomes import DELETED, RETRY, FaultLog, Outcome
from tools.campaign.waits import wrong_waits

TOLERANCE = 5.0
"""The seconds by which a loaded machine may delay a call."""
MIN_SECONDS_OF_429 = RETRY.deadline / 3
"""The shortest time after which a call may give up because of 429 without ``Retry-After``."""
BACKGROUND_ACTIONS = frozenset({"check_availability", "suspend_compute"})
"""The actions that the control plane starts by itself, such as five minutes after a start."""
ONCE = ("create_branch", "delete_timeline")
"""The actions that run at most once on a branch."""

# Any: JSON of the API.
Record = dict[str, Any]


class FinalState:
    """All keys and projects, and the branches, computes, roles and operations of some projects."""

    def __init__(self) -> None:
        self.created: dict[tuple[str, str], list[str]] = {}
        """The ids of existing objects, by kind and name."""
        self.names: dict[str, str] = {}
        """The names of projects, by id."""
        self.computes: Counter[str] = Counter()
        """The number of computes, by branch."""
        self.operations: dict[str, Record] = {}
        """The records of operations, by id."""
        self.repeated: list[str] = []
        """The operations that a list contains twice."""

    @classmethod
    async def read(cls, http: Http, projects: list[str]) -> "FinalState":
        """Read the state; ``projects`` are those in which branches were created."""
        state = cls()
        for key in await http.get("/api_keys"):
            state._add("key", key["name"], str(key["id"]))
        async for project in _all(http, "/projects?limit=400", "projects", "cursor"):
            state.names[project["id"]] = project["name"]
            if project["id"] not in projects:  # the others are renamed
                state._add("project", project["name"], project["id"])
        for project_id in projects:
            await state._read_project(http, f"/projects/{project_id}")
        return state

    async def _read_project(self, http: Http, path: str) -> None:
        async for branch in _all(http, f"{path}/branches?limit=400", "branches", "next"):
            self._add("branch", branch["name"], branch["id"])
            if branch["default"]:
                for role in (await http.get(f"{path}/branches/{branch['id']}/roles"))["roles"]:
                    self._add("role", role["name"], role["name"])
        for compute in (await http.get(f"{path}/endpoints"))["endpoints"]:
            self.computes[compute["branch_id"]] += 1
        async for operation in _all(http, f"{path}/operations?limit=1000", "operations", "cursor"):
            if operation["id"] in self.operations:
                self.repeated.append(operation["id"])
            self.operations[operation["id"]] = operation

    def _add(self, kind: str, name: str, id: str) -> None:
        self.created.setdefault((kind, name), []).append(id)

    def violations(self, outcomes: list[Outcome], log: FaultLog) -> Iterator[str]:
        """Yield a description of each wrong outcome."""
        deleted = {one.name for one in outcomes if one.kind in DELETED}
        for one in outcomes:
            for violation in (
                *self._wrong_results(one, deleted),
                *wrong_waits(one, log),
                *_wrong_errors(one, log),
            ):
                yield f"{one.kind} {one.name}: {violation} (the call raised {one.error!r})"

    def contradictions(self, before: "FinalState", outcomes: list[Outcome]) -> Iterator[str]:
        """Yield what is wrong in the state, compared with that before all calls."""
        attempted = {(one.kind, one.name) for one in outcomes} | {("key", "restart")}
        for kind, name in self.created.keys() - before.created.keys() - attempted:
            yield f"nobody has created {kind} {name}"
        for (kind, name), ids in before.created.items():
            if sorted(self.created.get((kind, name), [])) != sorted(ids):
                yield f"{kind} {name} is not the same as before all calls"
        branches = {id for (kind, _), ids in self.created.items() for id in ids if kind == "branch"}
        for id in self.computes.keys() - branches:
            yield f"{id} has a compute, but is no branch"
        for id in self.repeated:
            yield f"operation {id} is listed twice"
        for id, record in self.operations.items():
            if record["status"] != "finished":
                yield f"operation {id} is {record['status']}"
        runs = Counter((one["action"], one.get("branch_id")) for one in self.operations.values())
        for (action, branch), count in runs.items():
            if action in ONCE and count > 1:
                yield f"{action} ran {count} times on {branch}"
        for id, name in before.names.items():
            calls = [one for one in outcomes if one.project_id == id]
            yield from _wrong_names(calls, name, self.names.get(id, ""))

    def _wrong_results(self, one: Outcome, deleted: set[str]) -> Iterator[str]:
        if missing := {operation.id for operation in one.operations} - self.operations.keys():
            yield f"the operations {missing} are missing"
        if one.kind in DELETED:
            yield from self._wrong_deletions(one)
        if one.kind not in ("key", "project", "branch", "role"):
            return
        existing = self.created.get((one.kind, one.name), [])
        if one.id in deleted and one.id not in existing:
            existing = [*existing, one.id]
        if len(existing) > 1:
            yield f"created {len(existing)} times"
        if one.id is not None:
            if existing != [one.id]:
                yield f"the call returned {one.id}, but {existing} exist"
        elif existing and not one.maybe_executed:
            yield "reported as not created, but it exists"
        if one.kind == "branch" and one.id is not None:
            yield from self._wrong_operations(one, is_deleted=one.id in deleted)

    def _wrong_operations(self, one: Outcome, *, is_deleted: bool) -> Iterator[str]:
        started = {
            id
            for id, record in self.operations.items()
            if record.get("branch_id") == one.id and record["action"] not in BACKGROUND_ACTIONS
        }
        returned = {operation.id for operation in one.operations}
        if returned - started or (returned != started and not is_deleted):
            yield f"the result contains the operations {returned} instead of {started}"
        if {operation.project_id for operation in one.operations} != {one.project_id}:
            yield "the result contains an operation of another project"
        if one.error is None and {self.operations[id]["status"] for id in started} - {"finished"}:
            yield "the wait returned, but an operation is not finished"
        if not is_deleted and (computes := self.computes[one.id or ""]) != one.computes:
            yield f"the branch has {computes} computes instead of {one.computes}"

    def _wrong_deletions(self, one: Outcome) -> Iterator[str]:
        exists = any(
            one.name in ids for (kind, _), ids in self.created.items() if kind == DELETED[one.kind]
        )
        if one.error is None and exists:
            yield "reported as deleted, but it exists"
        if one.error is not None and not exists and not one.maybe_executed:
            yield "reported as not deleted, but it is"


def _wrong_names(outcomes: list[Outcome], name: str, last: str) -> Iterator[str]:
    """Yield each name that a project had after another one had replaced it.

    A request without a response may be executed later, but only once.
    """
    possible = {name}
    for one in [*outcomes, Outcome(kind="name", name="", id=last)]:
        if one.kind == "new name" and one.maybe_executed:
            possible.add(one.name)
        elif one.kind == "new name" and one.error is None:
            possible = possible - {name} | {one.name}
            name = one.name
        elif one.kind == "name" and one.id is not None and one.id != name:
            if one.id not in possible:
                yield f"a project was called {one.id} instead of {name}"
            possible = possible - {name} | {one.id}
            name = one.id


def _wrong_errors(one: Outcome, log: FaultLog) -> Iterator[str]:
    if one.error is not None and not isinstance(one.error, NeonError):
        yield "the exception is not the library's"
    if (
        isinstance(one.error, RateLimitedError)
        and not one.error.retry_after
        and one.loop_seconds < MIN_SECONDS_OF_429
    ):
        yield f"the call gave up after {one.loop_seconds:.1f} s of 429"
    if one.seconds > one.longest + TOLERANCE:
        yield f"the call took {one.seconds:.1f} s"
    for status in {log.rejected[id] for id in one.requests if id in log.rejected}:
        yield f"the control plane responded {status}"


async def _all(http: Http, path: str, records: str, cursor_name: str) -> AsyncGenerator[Record]:
    """Yield every record of a list."""
    cursor: str | None = ""
    while cursor is not None:
        page = await http.get(f"{path}&cursor={quote(cursor, safe='')}" if cursor else path)
        for record in page[records]:
            yield record
        cursor = page.get("pagination", {}).get(cursor_name) if page[records] else None
