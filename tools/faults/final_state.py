"""What the control plane knows in the end, and what of the outcomes contradicts it."""

from collections.abc import AsyncGenerator, Iterator
from urllib.parse import quote

from neonctl_async import NeonError, OperationFailedError
from tests.local.client import Http
from tools.faults.callers import BOUND, Outcome

SLACK = 5.0
"""Seconds by which a loaded machine may be late."""


class Truth:
    """All keys and projects, and the branches and operations of some, as they are in the end."""

    def __init__(self) -> None:
        self.made: dict[tuple[str, str], list[str]] = {}
        """The ids of what there is, by its kind and name."""
        self.operations: dict[str, str] = {}
        """The statuses of operations."""

    @classmethod
    async def read(cls, http: Http, projects: list[str]) -> "Truth":
        """Ask for all of it; ``projects`` are those that branches were made in."""
        truth = cls()
        for key in await http.get("/api_keys"):
            truth._note("key", key["name"], str(key["id"]))
        async for project in _all(http, "/projects?limit=400", "projects", "cursor"):
            truth._note("project", project["name"], project["id"])
        for project_id in projects:
            of_project = f"/projects/{project_id}"
            async for branch in _all(http, f"{of_project}/branches?limit=400", "branches", "next"):
                truth._note("branch", branch["name"], branch["id"])
            path = f"{of_project}/operations?limit=1000"
            async for operation in _all(http, path, "operations", "cursor"):
                truth.operations[operation["id"]] = operation["status"]
        return truth

    def _note(self, kind: str, name: str, id: str) -> None:
        self.made.setdefault((kind, name), []).append(id)

    def contradictions(self, outcomes: list[Outcome]) -> Iterator[str]:
        """What any of ``outcomes`` says that is not so."""
        gone = {one.name for one in outcomes if one.kind == "revoked key"}
        for one in outcomes:
            for wrong in (*self._of_outcome(one, gone), *_of_form(one)):
                yield f"{one.kind} {one.name}: {wrong} (told: {one.error!r})"

    def _of_outcome(self, one: Outcome, gone: set[str]) -> Iterator[str]:
        if one.kind == "list":
            return
        if one.kind == "revoked key":
            yield from self._of_revocation(one)
            return
        there = self.made.get((one.kind, one.name), [])
        if one.id in gone and one.id not in there:
            there = [*there, one.id]
        if len(there) > 1:
            yield f"made {len(there)} times"
        if one.id is not None:
            if there != [one.id]:
                yield f"said to be {one.id}, but there is {there}"
        elif there and not _may_be_done(one):
            yield "said not to be made, but there it is"
        if one.error is None and {self.operations.get(id) for id in one.operations} - {"finished"}:
            yield "said to have ended, but has not"

    def _of_revocation(self, one: Outcome) -> Iterator[str]:
        is_there = any(one.name in ids for (kind, _), ids in self.made.items() if kind == "key")
        if one.error is None and is_there:
            yield "said to be revoked, but is not"
        if one.error is not None and not is_there and not _may_be_done(one):
            yield "said not to be revoked, but is"


def _may_be_done(one: Outcome) -> bool:
    return isinstance(one.error, NeonError) and one.error.maybe_delivered


def _of_form(one: Outcome) -> Iterator[str]:
    if one.error is not None and not isinstance(one.error, NeonError):
        yield "an exception that is not the library's"
    if isinstance(one.error, OperationFailedError):
        yield "no operation fails here"
    if one.seconds > BOUND + SLACK:
        yield f"took {one.seconds:.1f} s"


async def _all(
    http: Http, path: str, records: str, cursor_name: str
) -> AsyncGenerator[dict[str, str]]:
    """Every record of a listing."""
    cursor: str | None = ""
    while cursor is not None:
        page = await http.get(f"{path}&cursor={quote(cursor, safe='')}" if cursor else path)
        for record in page[records]:
            yield record
        cursor = page.get("pagination", {}).get(cursor_name) if page[records] else None
