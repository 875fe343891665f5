"""A client that changes a project and its own keys in random order."""

import random
from contextlib import suppress
from itertools import count

from tools.soak.ledger import Ledger, State
from tools.soak.project import Project, Record
from tools.soak.run import LostResponseError, Run


class Writer:
    """Sends one request at a time. Every name that it creates is unique.

    It deletes again what a request without a response may have deleted.
    """

    def __init__(self, number: int, run: Run, project: Project, chance: random.Random) -> None:
        self._run = run
        self._project = project
        self._chance = chance
        self._prefix = f"w{number}-"
        self._names = (f"{self._prefix}{step}" for step in count())
        self._keys = Ledger("key")
        self._ids: dict[str, str] = {}
        self._tokens: dict[str, str] = {}
        self._left: dict[str, list[str]] = {"branch": [], "key": []}
        """The names of the objects that no response has confirmed as deleted."""
        self._tried: set[str] = set()
        """The names of the objects that a request may have deleted."""
        self._steps = [
            *(self._create_branch, self._delete_branch, self._create_role, self._read_lists),
            *(self._create_key, self._revoke_key, self._use_keys),
        ]

    async def work(self, *, renames: bool) -> None:
        """Change the project until the run is over. Only one writer renames a project."""
        steps = [*self._steps, self._rename_project] if renames else self._steps
        while not self._run.over:
            with suppress(LostResponseError):
                await self._chance.choice(steps)()

    def check_keys(self, listed: list[str]) -> None:
        """Compare the keys of this writer with the names of all keys of the account."""
        mine = [name for name in listed if name.startswith(self._prefix)]
        self._run.violations += self._keys.differences(mine)

    async def _create_branch(self) -> None:
        name = next(self._names)
        body = {"branch": {"name": name}, "endpoints": [{"type": "read_write"}]}
        self._project.branches.attempt(name)
        path = f"{self._project.path}/branches"
        created = (await self._run.send("POST", path, body)).json
        self._project.branches.confirm(name, State.PRESENT)
        self._ids[name] = created["branch"]["id"]
        self._left["branch"].append(name)
        self._project.record(created["operations"])

    async def _delete_branch(self) -> None:
        path = f"{self._project.path}/branches"
        if (reply := await self._delete("branch", self._project.branches, path, 204)) is not None:
            self._project.record(reply["operations"])

    async def _create_role(self) -> None:
        name = next(self._names)
        self._project.roles.attempt(name)
        path = f"{self._project.main}/roles"
        created = await self._run.send("POST", path, {"role": {"name": name}})
        self._project.roles.confirm(name, State.PRESENT)
        self._project.record(created.json["operations"])

    async def _read_lists(self) -> None:
        for kind in ("branches", "operations"):
            page = (await self._run.send("GET", f"{self._project.path}/{kind}?limit=20")).json
            self._project.record(page.get("operations", []))

    async def _create_key(self) -> None:
        name = next(self._names)
        self._keys.attempt(name)
        created = (await self._run.send("POST", "/api_keys", {"key_name": name})).json
        self._keys.confirm(name, State.PRESENT)
        self._ids[name], self._tokens[name] = str(created["id"]), created["key"]
        self._left["key"].append(name)

    async def _revoke_key(self) -> None:
        await self._delete("key", self._keys, "/api_keys", 404)

    async def _use_keys(self) -> None:
        """Use a valid key and a revoked one."""
        for state, status in ((State.PRESENT, 200), (State.ABSENT, 401)):
            if names := self._keys.names(state):
                token = self._tokens[self._chance.choice(names)]
                await self._run.send("GET", "/users/me", key=token, expected={status})

    async def _rename_project(self) -> None:
        await self._project.check_name()
        name = next(self._names)
        self._project.name.attempt(name)
        await self._run.send("PATCH", self._project.path, {"project": {"name": name}})
        self._project.name.confirm(name)

    async def _delete(self, kind: str, ledger: Ledger, path: str, again: int) -> Record | None:
        """Delete an object, and return the response unless an earlier request has deleted it.

        Its status is ``again`` in that case.
        """
        if not (left := self._left[kind]):
            return None
        name = self._chance.choice(left)
        expected = {200, again} if name in self._tried else {200}
        self._tried.add(name)
        ledger.attempt(name)
        reply = await self._run.send("DELETE", f"{path}/{self._ids[name]}", expected=expected)
        ledger.confirm(name, State.ABSENT)
        left.remove(name)
        return reply.json if reply.status == 200 else None
