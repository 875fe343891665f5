"""A project that some writers change, and what their responses confirm about it."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from typing import Any
from urllib.parse import quote

from tools.soak.ledger import Ledger, Register, State
from tools.soak.run import Run

FINAL = frozenset({"finished", "failed"})
ONCE = ("create_branch", "delete_timeline")
"""The actions that run at most once on a branch."""

# Any: the records of the server.
Record = dict[str, Any]


class Project:
    """A project. No server is killed while it is created."""

    def __init__(self, run: Run, name: str) -> None:
        self.path = self.main = ""
        self.name = Register("the project name", name)
        self.branches = Ledger("branch")
        self.roles = Ledger("role")
        self._run = run
        self._first_name = name
        self._operations: dict[str, str | None] = {}
        """The final status of each operation, None until a response contains it."""

    async def create(self) -> None:
        """Create the project."""
        body = {"project": {"name": self._first_name}}
        created = (await self._run.send("POST", "/projects", body)).json
        self.path = f"/projects/{created['project']['id']}"
        self.main = f"{self.path}/branches/{created['branch']['id']}"
        self.branches.confirm("main", State.PRESENT)
        self.roles.confirm("neondb_owner", State.PRESENT)
        self.record(created["operations"])

    def record(self, operations: Iterable[Record]) -> None:
        """Record operations of a response. A second, different final status is a violation."""
        for operation in operations:
            before = self._operations.setdefault(operation["id"], None)
            if operation["status"] in FINAL and not operation.get("retry_at"):
                if before not in (None, operation["status"]):
                    self._run.violations.append(f"{operation['id']}: {before}, then {operation}")
                self._operations[operation["id"]] = operation["status"]

    async def check_name(self) -> None:
        """Compare the name with the server."""
        name = (await self._run.send("GET", self.path)).json["project"]["name"]
        self._run.violations += self.name.differences(name)

    async def check(self) -> None:
        """Compare everything with the server, once all operations have had the time to finish."""
        violations = self._run.violations
        branches = [one async for one in self._pages(f"{self.path}/branches", "branches")]
        violations += self.branches.differences(branch["name"] for branch in branches)
        computes = (await self._run.send("GET", f"{self.path}/endpoints")).json["endpoints"]
        if {branch["id"] for branch in branches} != {compute["branch_id"] for compute in computes}:
            violations.append(f"{self.path} has a branch without a compute, or the reverse")
        roles = (await self._run.send("GET", f"{self.main}/roles")).json["roles"]
        violations += self.roles.differences(role["name"] for role in roles)
        await self.check_name()
        await self._check_operations()

    async def _check_operations(self) -> None:
        violations = self._run.violations
        known = set(self._operations)
        operations = [one async for one in self._pages(f"{self.path}/operations", "operations")]
        self.record(operations)
        ids = Counter(operation["id"] for operation in operations)
        violations += [f"operation {id_} is listed {n} times" for id_, n in ids.items() if n > 1]
        violations += [f"operation {id_} is missing" for id_ in known - set(ids)]
        violations += [
            f"operation {operation['id']} is {operation['status']}"
            for operation in operations
            if operation["status"] not in FINAL
        ]
        done = Counter((one["action"], one["branch_id"]) for one in operations)
        violations += [
            f"{action} ran {n} times on {branch_id}"
            for (action, branch_id), n in done.items()
            if action in ONCE and n > 1
        ]

    async def _pages(self, path: str, kind: str) -> AsyncIterator[Record]:
        query = "limit=100"
        while True:
            page = (await self._run.send("GET", f"{path}?{query}")).json
            for record in page[kind]:
                yield record
            pagination = page.get("pagination", {})
            cursor = pagination.get("cursor") or pagination.get("next")
            if not cursor:
                return
            query = f"limit=100&cursor={quote(cursor, safe='')}"
