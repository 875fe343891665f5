from urllib.parse import urlsplit

import pytest

from neonctl_async import NeonClient, Secret
from neonctl_async.types import Role, RoleDeleted, RoleUpdated
from tests.models.records import OPERATION, ROLE, JsonObject
from tests.resources.wire import Call, no_content, record, record_in, records_in

PATH = "/projects/p-1/branches/br-1/roles"
CHANGED: JsonObject = {"role": {**ROLE, "password": "hunter2"}, "operations": [OPERATION]}
UPDATED = record(RoleUpdated, CHANGED)
DELETED = record(RoleDeleted, CHANGED)
LISTED = records_in("roles", Role, ROLE)
FOUND = record_in("role", Role, ROLE)

CALLS = [
    Call(lambda neon: neon.roles.list("p-1", "br-1"), f"GET {PATH}", LISTED),
    Call(lambda neon: neon.roles.get("p-1", "br-1", "ada@home"), f"GET {PATH}/ada%40home", FOUND),
    Call(
        lambda neon: neon.roles.create("p-1", "br-1", name="ada"),
        f"POST {PATH}",
        UPDATED,
        body={"role": {"name": "ada"}},
    ),
    Call(
        lambda neon: neon.roles.create("p-1", "br-1", name="ada", no_login=False),
        f"POST {PATH}",
        UPDATED,
        body={"role": {"name": "ada", "no_login": False}},
    ),
    Call(lambda neon: neon.roles.delete("p-1", "br-1", "ada"), f"DELETE {PATH}/ada", DELETED),
    Call(
        lambda neon: neon.roles.delete("p-1", "br-1", "ada", wait=True),
        f"DELETE {PATH}/ada",
        no_content(RoleDeleted()),
    ),
    Call(
        lambda neon: neon.roles.reveal_password("p-1", "br-1", "ada"),
        f"GET {PATH}/ada/reveal_password",
        record_in("password", Secret, "hunter2"),
    ),
    Call(
        lambda neon: neon.roles.reset_password("p-1", "br-1", "ada"),
        f"POST {PATH}/ada/reset_password",
        UPDATED,
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()


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
