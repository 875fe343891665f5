"""The state table of keys (section 3.1), driven by hypothesis: every row, in any order."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar, cast

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from neonctl_async.local import LocalControlPlane
from tests.local.client import Client

T = TypeVar("T")
NOTHING = cast("Any", multiple())
ORGANIZATIONS = ("first", "second")


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """What the specification says about a key, told when it was made."""

    id: int
    token: str
    kind: str
    owner: str
    project: str | None = None


class KeyStates(RuleBasedStateMachine):
    """Two users, two organizations and two projects; whatever happens, keys open what they may."""

    keys = Bundle("keys")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.control_plane = LocalControlPlane()
        self.revoked: set[str] = set()
        self.stopped: set[str] = set()
        self.live: dict[str, Key] = {}
        self.members: set[str] = {"first", "second"}
        self.home: dict[str, str] = {}
        self.ids: dict[str, str] = {}

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the machine's own loop."""
        return self.runner.run(work)

    def teardown(self) -> None:
        self.run(self.close())
        self.runner.close()

    async def close(self) -> None:
        await self.api.__aexit__(None, None, None)
        await self.control_plane.stop()

    @initialize(target=keys)
    def start(self) -> Any:
        return self.run(self.begin())

    async def begin(self) -> Any:
        await self.control_plane.start()
        self.api = Client(self.control_plane)
        second = await self.control_plane.create_user("Second", "second@example.com")
        self.ids = {"first": self.control_plane.org_id, "member": second}
        self.ids["second"] = await self.control_plane.create_organization("Second")
        for organization in ORGANIZATIONS:
            await self.control_plane.add_member(self.ids[organization], second)
            made = await self.api.project(org_id=self.ids[organization])
            self.home[made["project"]["id"]] = organization
        return multiple(
            self.keep(id=1, token=self.api.key, kind="personal", owner="admin"),
            await self.personal("member"),
        )

    def keep(self, **fields: Any) -> Key:
        key = Key(**fields)
        if key.token != self.api.key:
            self.live[key.token] = key
        return key

    async def personal(self, owner: str) -> Key:
        if owner == "admin":
            created = await self.api.done("POST", "/api_keys", {"key_name": "k"})
            return self.keep(id=created["id"], token=created["key"], kind="personal", owner=owner)
        token = await self.control_plane.create_api_key("k", user_id=self.ids["member"])
        key_id = (await self.api.get("/api_keys", key=token))[-1]["id"]
        return self.keep(id=key_id, token=token, kind="personal", owner=owner)

    @rule(target=keys, owner=st.sampled_from(["admin", "member"]))
    def create_personal(self, owner: str) -> Key:
        return self.run(self.personal(owner))

    @rule(target=keys, organization=st.sampled_from(ORGANIZATIONS), scoped=st.booleans())
    def create_for_organization(self, organization: str, scoped: bool) -> Any:
        body = {"key_name": "k"}
        here = [project for project, home in self.home.items() if home == organization]
        if scoped and not here:
            return NOTHING
        if scoped:
            body["project_id"] = here[0]
        path = f"/organizations/{self.ids[organization]}/api_keys"
        created = self.run(self.api.done("POST", path, body))
        return self.keep(
            id=created["id"],
            token=created["key"],
            kind="project" if scoped else "organization",
            owner=organization,
            project=created.get("project_id"),
        )

    @rule(key=consumes(keys))
    def revoke(self, key: Key) -> None:
        if key.token == self.api.key:
            return
        if key.kind == "personal":
            path, caller = f"/api_keys/{key.id}", key.token
            if key.owner == "admin":
                caller = self.api.key
        else:
            path, caller = f"/organizations/{self.ids[key.owner]}/api_keys/{key.id}", self.api.key
        status = self.run(self.api.send("DELETE", path, key=caller)).status
        assert status == (200 if key.token in self.live else 404)
        self.live.pop(key.token, None)
        self.revoked.add(key.token)

    @rule(organization=st.sampled_from(ORGANIZATIONS))
    def leave(self, organization: str) -> None:
        if organization in self.members:
            self.run(self.control_plane.remove_member(self.ids[organization], self.ids["member"]))
            self.members.discard(organization)

    @rule(organization=st.sampled_from(ORGANIZATIONS))
    def join(self, organization: str) -> None:
        if organization not in self.members:
            self.run(self.control_plane.add_member(self.ids[organization], self.ids["member"]))
            self.members.add(organization)

    @rule(data=st.data())
    def transfer(self, data: st.DataObject) -> None:
        project = data.draw(st.sampled_from(sorted(self.home)))
        source = self.home[project]
        destination = ORGANIZATIONS[1 - ORGANIZATIONS.index(source)]
        path = f"/organizations/{self.ids[source]}/projects/transfer"
        body = {"destination_org_id": self.ids[destination], "project_ids": [project]}
        self.run(self.api.done("POST", path, body))
        self.home[project] = destination
        for token in [token for token, key in self.live.items() if key.project == project]:
            del self.live[token]
            self.stopped.add(token)

    @invariant()
    def every_key_opens_what_it_may(self) -> None:
        if self.home:
            self.run(self.check())

    async def check(self) -> None:
        for key in self.live.values():
            page = await self.api.get("/projects", key=key.token)
            reached = {project["id"] for project in page["projects"]}
            assert reached == self.reach(key), key
        for token in self.revoked | self.stopped:
            assert (await self.api.send("GET", "/projects", key=token)).status == 401

    def reach(self, key: Key) -> set[str]:
        if key.kind == "project":
            return {key.project} if key.project else set()
        if key.kind == "organization":
            return {project for project, home in self.home.items() if home == key.owner}
        if key.owner == "admin":
            return set(self.home)
        return {project for project, home in self.home.items() if home in self.members}


TestKeyStates = KeyStates.TestCase
TestKeyStates.settings = settings(max_examples=5, stateful_step_count=12, deadline=None)
