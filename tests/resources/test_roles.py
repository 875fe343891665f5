from urllib.parse import urlsplit

import pytest

from neonctl_async import NeonClient, Secret
from neonctl_async.types import Role, RoleDeleted, RoleUpdated
from tests.models.records import OPERATION, ROLE, JsonObject, decode
from tests.resources.wire import Call, SentRequest, check_call

PATH = "/projects/p-1/branches/br-1/roles"
CHANGED: JsonObject = {"role": {**ROLE, "password": "hunter2"}, "operations": [OPERATION]}
UPDATED = decode(RoleUpdated, CHANGED)

CALLS = [
    Call(
        lambda neon: neon.roles.list("p-1", "br-1"),
        sends=SentRequest("GET", PATH, {}, None),
        response={"roles": [ROLE]},
        returns=[decode(Role, ROLE)],
    ),
    Call(
        lambda neon: neon.roles.get("p-1", "br-1", "ada@home"),
        sends=SentRequest("GET", f"{PATH}/ada%40home", {}, None),
        response={"role": ROLE},
        returns=decode(Role, ROLE),
    ),
    Call(
        lambda neon: neon.roles.create("p-1", "br-1", name="ada"),
        sends=SentRequest("POST", PATH, {}, {"role": {"name": "ada"}}),
        response=CHANGED,
        returns=UPDATED,
    ),
    Call(
        lambda neon: neon.roles.create("p-1", "br-1", name="ada", no_login=False),
        sends=SentRequest("POST", PATH, {}, {"role": {"name": "ada", "no_login": False}}),
        response=CHANGED,
        returns=UPDATED,
    ),
    Call(
        lambda neon: neon.roles.delete("p-1", "br-1", "ada"),
        sends=SentRequest("DELETE", f"{PATH}/ada", {}, None),
        response=CHANGED,
        returns=decode(RoleDeleted, CHANGED),
    ),
    Call(
        lambda neon: neon.roles.delete("p-1", "br-1", "ada", wait=True),
        sends=SentRequest("DELETE", f"{PATH}/ada", {}, None),
        response=None,
        returns=RoleDeleted(),
    ),
    Call(
        lambda neon: neon.roles.reveal_password("p-1", "br-1", "ada"),
        sends=SentRequest("GET", f"{PATH}/ada/reveal_password", {}, None),
        response={"password": "hunter2"},
        returns=Secret("hunter2"),
    ),
    Call(
        lambda neon: neon.roles.reset_password("p-1", "br-1", "ada"),
        sends=SentRequest("POST", f"{PATH}/ada/reset_password", {}, None),
        response=CHANGED,
        returns=UPDATED,
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await check_call(call)


@pytest.mark.virtual_time
async def test_reset_password_replaces_the_old_one(
    neon: NeonClient, project_id: str, branch_id: str
) -> None:
    [role] = await neon.roles.list(project_id, branch_id)
    [database] = await neon.databases.list(project_id, branch_id)
    old = await neon.roles.reveal_password(project_id, branch_id, role.name)
    reset = await neon.roles.reset_password(project_id, branch_id, role.name, wait=True)
    new = await neon.roles.reveal_password(project_id, branch_id, role.name)
    assert (role.password, reset.role.password) == (None, new)
    assert new != old
    uri = await neon.projects.connection_uri(
        project_id, database_name=database.name, role_name=role.name
    )
    assert urlsplit(uri.reveal()).password == new.reveal()


@pytest.mark.virtual_time
async def test_role_is_created_and_deleted(
    neon: NeonClient, project_id: str, branch_id: str
) -> None:
    created = await neon.roles.create(project_id, branch_id, name="ada", wait=True)
    assert created.role.password == await neon.roles.reveal_password(project_id, branch_id, "ada")
    assert (await neon.roles.get(project_id, branch_id, "ada")).password is None
    await neon.roles.delete(project_id, branch_id, "ada", wait=True)
    assert await neon.roles.delete(project_id, branch_id, "ada") == RoleDeleted()
    assert "ada" not in [role.name for role in await neon.roles.list(project_id, branch_id)]
