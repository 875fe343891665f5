"""A client that changes its own project and its own keys in random order."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from itertools import count
from typing import Any
from urllib.parse import quote

import aiohttp

from control_plane.tests.client import Http, Reply
from tools.restarts.ledger import Ledger, Register, State

FINAL = frozenset({"finished", "failed"})


class LostResponseError(Exception):
    """A request got no response. Its effect is unknown."""


class Findings:
    """The violations of a run, and counts for its report."""

    def __init__(self) -> None:
        self.violations: list[str] = []
        self.statuses: Counter[int] = Counter()
        self.lost_responses = 0


class Run:
    """The state that all writers share. ``up`` is set while a server runs."""

    http: Http

    def __init__(self) -> None:
        self.findings = Findings()
        self.up = asyncio.Event()
        self.over = False


class Writer:
    """Sends one request at a time. Every name that it creates is unique."""

    def __init__(self, number: int, run: Run, chance: random.Random) -> None:
        self._run = run
        self._chance = chance
        self._prefix = f"w{number}-"
        self._names = (f"{self._prefix}{step}" for step in count())
        self._branches = Ledger("branch")
        self._roles = Ledger("role")
        self._keys = Ledger("key")
        self._ids: dict[str, str] = {}
        self._tokens: dict[str, str] = {}
        self._operations: set[str] = set()
        self._project = self._main = ""
        self._name = Register("the project name", "")

    async def create_project(self) -> None:
        """Create the project of the writer. No server is killed during this request."""
        name = next(self._names)
        created = (await self._send("POST", "/projects", {"project": {"name": name}})).json
        self._name.confirm(name)
        self._project = f"/projects/{created['project']['id']}"
        self._main = f"{self._project}/branches/{created['branch']['id']}"
        self._branches.confirm("main", State.PRESENT)
        self._roles.confirm("neondb_owner", State.PRESENT)
        self._announced(created)

    async def work(self) -> None:
        """Change the project until the run is over."""
        steps = (
            *(self._create_branch, self._delete_branch, self._create_role),
            *(self._create_key, self._revoke_key, self._use_keys, self._rename_project),
        )
        while not self._run.over:
            try:
                await self._chance.choice(steps)()
            except LostResponseError:
                self._run.findings.lost_responses += 1

    async def check(self) -> None:
        """Compare everything with the server."""
        violations = self._run.findings.violations
        branches = [one async for one in self._pages(f"{self._project}/branches", "branches")]
        violations += self._branches.differences(branch["name"] for branch in branches)
        computes = (await self._send("GET", f"{self._project}/endpoints")).json["endpoints"]
        if {branch["id"] for branch in branches} != {compute["branch_id"] for compute in computes}:
            violations.append(f"{self._project} has a branch without a compute, or the reverse")
        roles = (await self._send("GET", f"{self._main}/roles")).json["roles"]
        violations += self._roles.differences(role["name"] for role in roles)
        await self._use_keys()
        await self._check_name()
        await self._check_operations()

    def check_keys(self, listed: list[str]) -> None:
        """Compare the keys of this writer with the names of all keys of the account."""
        mine = [name for name in listed if name.startswith(self._prefix)]
        self._run.findings.violations += self._keys.differences(mine)

    async def _create_branch(self) -> None:
        name = next(self._names)
        body = {"branch": {"name": name}, "endpoints": [{"type": "read_write"}]}
        self._branches.attempt(name)
        created = (await self._send("POST", f"{self._project}/branches", body)).json
        self._branches.confirm(name, State.PRESENT)
        self._ids[name] = created["branch"]["id"]
        self._announced(created)

    async def _delete_branch(self) -> None:
        name = self._pick(self._branches, without="main")
        if name is None:
            return
        self._branches.attempt(name)
        path = f"{self._project}/branches/{self._ids[name]}"
        deleted = await self._send("DELETE", path)
        self._branches.confirm(name, State.ABSENT)
        self._announced(deleted.json)

    async def _create_role(self) -> None:
        name = next(self._names)
        self._roles.attempt(name)
        created = await self._send("POST", f"{self._main}/roles", {"role": {"name": name}})
        self._roles.confirm(name, State.PRESENT)
        self._announced(created.json)

    async def _create_key(self) -> None:
        name = next(self._names)
        self._keys.attempt(name)
        created = (await self._send("POST", "/api_keys", {"key_name": name})).json
        self._keys.confirm(name, State.PRESENT)
        self._ids[name], self._tokens[name] = str(created["id"]), created["key"]

    async def _revoke_key(self) -> None:
        name = self._pick(self._keys)
        if name is None:
            return
        self._keys.attempt(name)
        await self._send("DELETE", f"/api_keys/{self._ids[name]}")
        self._keys.confirm(name, State.ABSENT)

    async def _use_keys(self) -> None:
        """Use a valid key and a revoked one."""
        for state, expected in ((State.PRESENT, 200), (State.ABSENT, 401)):
            name = self._pick(self._keys, state=state)
            if name is not None:
                await self._send("GET", "/users/me", key=self._tokens[name], expected=expected)

    async def _rename_project(self) -> None:
        await self._check_name()
        name = next(self._names)
        self._name.attempt(name)
        await self._send("PATCH", self._project, {"project": {"name": name}})
        self._name.confirm(name)

    async def _check_name(self) -> None:
        name = (await self._send("GET", self._project)).json["project"]["name"]
        self._run.findings.violations += self._name.differences(name)

    async def _check_operations(self) -> None:
        violations = self._run.findings.violations
        path = f"{self._project}/operations"
        operations = [one async for one in self._pages(path, "operations")]
        ids = Counter(operation["id"] for operation in operations)
        violations += [f"operation {id_} is listed {n} times" for id_, n in ids.items() if n > 1]
        violations += [f"operation {id_} is missing" for id_ in self._operations - set(ids)]
        violations += [
            f"operation {operation['id']} is {operation['status']}"
            for operation in operations
            if operation["status"] not in FINAL
        ]
        once = ("create_branch", "delete_timeline")
        done = Counter((one["action"], one["branch_id"]) for one in operations)
        violations += [
            f"{action} ran {n} times on {branch_id}"
            for (action, branch_id), n in done.items()
            if action in once and n > 1
        ]

    # Any: the records of the server.
    async def _pages(self, path: str, kind: str) -> AsyncIterator[Any]:
        query = "limit=100"
        while True:
            page = (await self._send("GET", f"{path}?{query}")).json
            for record in page[kind]:
                yield record
            pagination = page.get("pagination", {})
            cursor = pagination.get("cursor") or pagination.get("next")
            if not cursor:
                return
            query = f"limit=100&cursor={quote(cursor, safe='')}"

    def _pick(
        self, ledger: Ledger, *, state: State = State.PRESENT, without: str = ""
    ) -> str | None:
        names = [name for name in ledger.names(state) if name != without]
        return self._chance.choice(names) if names else None

    # Any: the values of a JSON object.
    def _announced(self, body: dict[str, Any]) -> None:
        self._operations |= {operation["id"] for operation in body["operations"]}

    async def _send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        key: str | None = None,
        expected: int = 0,
    ) -> Reply:
        """Send a request. A status other than ``expected``, or 200 and 201, is a violation."""
        await self._run.up.wait()
        try:
            reply = await self._run.http.send(method, path, body, key=key)
        except (aiohttp.ClientError, OSError):
            raise LostResponseError from None
        findings = self._run.findings
        findings.statuses[reply.status] += 1
        if reply.status not in ({expected} if expected else {200, 201}):
            findings.violations.append(f"{method} {path}: {reply.status} {reply.content!r}")
            raise LostResponseError
        return reply
