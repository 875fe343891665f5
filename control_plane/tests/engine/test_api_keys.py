"""Authentication, and the states of keys in any order of events (sections 3.1 and 5)."""

import asyncio
import logging
from collections.abc import Coroutine
from itertools import product
from typing import Any, TypeVar, cast

import msgspec
import pytest
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

from control_plane.tests.client import Client
from neonctl_local import LocalControlPlane
from neonctl_local.engine import api_keys

T = TypeVar("T")
NOTHING = cast("Any", multiple())
ORGANIZATIONS = ("first", "second")


BAD_CREDENTIALS = [
    "",
    "Bearer",
    "Bearer ",
    "Basic abc",
    "neon_api_key_1234567890abcdef1234567890abcdef",
    "Bearer neon_api_key_1234567890abcdef1234567890abcdef",
    "Bearer  ",
]


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A key, with the owner that decides which projects it can access."""

    id: int
    token: str
    kind: str
    owner: str
    project: str | None = None


class KeyStates(RuleBasedStateMachine):
    """Two users, two organizations and two projects, in which keys and memberships change."""

    keys = Bundle("keys")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.control_plane = LocalControlPlane()
        self.revoked: set[str] = set()
        self.lost_project: set[str] = set()
        self.active: dict[str, Key] = {}
        self.members: set[str] = {"first", "second"}
        self.organization_of: dict[str, str] = {}
        self.ids: dict[str, str] = {}

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the event loop of the state machine."""
        return self.runner.run(coroutine)

    def teardown(self) -> None:
        self.run(self.close())
        self.runner.close()

    async def close(self) -> None:
        await self.api.close()
        await self.control_plane.stop()

    @initialize(target=keys)
    def start(self) -> Any:
        return self.run(self.set_up())

    async def set_up(self) -> Any:
        await self.control_plane.start()
        self.api = Client(self.control_plane)
        second = await self.control_plane.create_user("Second", "second@example.com")
        self.ids = {"first": self.control_plane.org_id, "member": second}
        self.ids["second"] = await self.control_plane.create_organization("Second")
        for organization in ORGANIZATIONS:
            await self.control_plane.add_member(self.ids[organization], second)
            created = await self.api.project(org_id=self.ids[organization])
            self.organization_of[created["project"]["id"]] = organization
        return multiple(
            self.add_key(id=1, token=self.api.key, kind="personal", owner="admin"),
            await self.create_key_of("member"),
        )

    def add_key(self, **fields: Any) -> Key:
        key = Key(**fields)
        if key.token != self.api.key:
            self.active[key.token] = key
        return key

    async def create_key_of(self, owner: str) -> Key:
        if owner == "admin":
            created = await self.api.request("POST", "/api_keys", {"key_name": "k"})
            key_id, token = created["id"], created["key"]
        else:
            token = await self.control_plane.create_api_key("k", user_id=self.ids["member"])
            key_id = (await self.api.get("/api_keys", key=token))[0]["id"]
        return self.add_key(id=key_id, token=token, kind="personal", owner=owner)

    @rule(target=keys, owner=st.sampled_from(["admin", "member"]))
    def create_personal(self, owner: str) -> Key:
        return self.run(self.create_key_of(owner))

    @rule(target=keys, organization=st.sampled_from(ORGANIZATIONS), scoped=st.booleans())
    def create_for_organization(self, organization: str, scoped: bool) -> Any:
        body = {"key_name": "k"}
        projects = [
            project for project, owner in self.organization_of.items() if owner == organization
        ]
        if scoped and not projects:
            return NOTHING
        if scoped:
            body["project_id"] = projects[0]
        path = f"/organizations/{self.ids[organization]}/api_keys"
        created = self.run(self.api.request("POST", path, body))
        return self.add_key(
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
            path, sender = f"/api_keys/{key.id}", key.token
            if key.owner == "admin":
                sender = self.api.key
        else:
            path, sender = f"/organizations/{self.ids[key.owner]}/api_keys/{key.id}", self.api.key
        status = self.run(self.api.send("DELETE", path, key=sender)).status
        assert status == (200 if key.token in self.active else 404)
        self.active.pop(key.token, None)
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
        project = data.draw(st.sampled_from(sorted(self.organization_of)))
        source = self.organization_of[project]
        destination = ORGANIZATIONS[1 - ORGANIZATIONS.index(source)]
        path = f"/organizations/{self.ids[source]}/projects/transfer"
        body = {"destination_org_id": self.ids[destination], "project_ids": [project]}
        self.run(self.api.request("POST", path, body))
        self.organization_of[project] = destination
        for token in [token for token, key in self.active.items() if key.project == project]:
            del self.active[token]
            self.lost_project.add(token)

    @invariant()
    def keys_access_the_projects_they_may_access(self) -> None:
        if self.organization_of:
            self.run(self.check())

    async def check(self) -> None:
        for key in self.active.values():
            page = await self.api.get("/projects", key=key.token)
            accessible = {project["id"] for project in page["projects"]}
            assert accessible == self.expected_projects(key), key
        for token in self.revoked | self.lost_project:
            assert (await self.api.send("GET", "/projects", key=token)).status == 401

    def expected_projects(self, key: Key) -> set[str]:
        if key.kind == "project":
            return {key.project} if key.project else set()
        if key.kind == "organization":
            return {
                project for project, owner in self.organization_of.items() if owner == key.owner
            }
        if key.owner == "admin":
            return set(self.organization_of)
        return {project for project, owner in self.organization_of.items() if owner in self.members}


TestKeyStates = KeyStates.TestCase
TestKeyStates.settings = settings(max_examples=5, stateful_step_count=12, deadline=None)


@pytest.mark.parametrize(
    ("form", "status"),
    [
        *(("Bearer {}", 200), ("bearer {}", 200), ("Bearer  {} ", 200)),
        *(
            ("Basic {}", 401),
            ("Token {}", 401),
            ("{} {}", 401),
            ("{}", 401),
            ("BearerBearer {}", 401),
        ),
    ],
)
async def test_valid_key_needs_the_scheme_bearer(api: Client, form: str, status: int) -> None:
    headers = {"Authorization": form.format(api.key, api.key)}
    reply = await api.send("GET", "/users/me", key="", headers=headers)
    assert reply.status == status
    if status == 401:
        assert "malformed: send 'Bearer <API_KEY>'" in reply.message


@pytest.mark.fact("keys-1")
@pytest.mark.parametrize("authorization", BAD_CREDENTIALS)
async def test_request_without_a_valid_key_is_401_before_any_other_check(
    api: Client, authorization: str
) -> None:
    headers = {"Authorization": authorization} if authorization else None
    for method, path in product(("GET", "PUT", "POST"), ("/projects", "/no/such/path")):
        reply = await api.send(method, path, key="", content=b"{" * (2 << 20), headers=headers)
        assert reply.status == 401, (method, path)
        assert "API key" in reply.message or "Authorization" in reply.message


async def test_keys_with_equal_locators_are_distinguished(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_keys, "_LOCATOR", 0)
    first, second = [(await api.control_plane.create_api_key(name)) for name in ("one", "two")]
    revoked = (await api.get("/api_keys", key=first))[-2]["id"]
    await api.request("DELETE", f"/api_keys/{revoked}", key=second)
    assert (await api.send("GET", "/users/me", key=first)).status == 401
    assert (await api.send("GET", "/users/me", key=second)).status == 200
    assert (await api.send("GET", "/users/me", key="unknown")).status == 401


async def test_more_than_10000_keys_log_a_warning(
    api: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(api_keys, "RECOMMENDED_KEYS", 2)
    with caplog.at_level(logging.WARNING, api_keys.__name__):
        for name in ("second", "third"):
            await api.request("POST", "/api_keys", {"key_name": name})
    assert [record.message for record in caplog.records] == [
        f"account {api.control_plane.user_id} has 3 API keys; the recommended maximum is 2"
    ]
