import pytest

from neonctl_async import NeonClient
from neonctl_async.types import Database, DatabaseDeleted, DatabaseUpdated
from tests.models.records import DATABASE, OPERATION, JsonObject, decode
from tests.resources.wire import Call, SentRequest, check_call

PATH = "/projects/p-1/branches/br-1/databases"
CHANGED: JsonObject = {"database": DATABASE, "operations": [OPERATION]}
UPDATED = decode(DatabaseUpdated, CHANGED)
SPEC: JsonObject = {"name": "shop", "owner_name": "ada"}

CALLS = [
    Call(
        lambda neon: neon.databases.list("p-1", "br-1"),
        sends=SentRequest("GET", PATH, {}, None),
        response={"databases": [DATABASE]},
        returns=[decode(Database, DATABASE)],
    ),
    Call(
        lambda neon: neon.databases.get("p-1", "br-1", "the shop"),
        sends=SentRequest("GET", f"{PATH}/the%20shop", {}, None),
        response={"database": DATABASE},
        returns=decode(Database, DATABASE),
    ),
    Call(
        lambda neon: neon.databases.create("p-1", "br-1", name="shop", owner_name="ada"),
        sends=SentRequest("POST", PATH, {}, {"database": SPEC}),
        response=CHANGED,
        returns=UPDATED,
    ),
    Call(
        lambda neon: neon.databases.update("p-1", "br-1", "neondb"),
        sends=SentRequest("PATCH", f"{PATH}/neondb", {}, {"database": {}}),
        response=CHANGED,
        returns=UPDATED,
    ),
    Call(
        lambda neon: neon.databases.update("p-1", "br-1", "neondb", name="shop", owner_name="ada"),
        sends=SentRequest("PATCH", f"{PATH}/neondb", {}, {"database": SPEC}),
        response=CHANGED,
        returns=UPDATED,
    ),
    Call(
        lambda neon: neon.databases.delete("p-1", "br-1", "neondb"),
        sends=SentRequest("DELETE", f"{PATH}/neondb", {}, None),
        response=CHANGED,
        returns=decode(DatabaseDeleted, CHANGED),
    ),
    Call(
        lambda neon: neon.databases.delete("p-1", "br-1", "neondb", wait=True),
        sends=SentRequest("DELETE", f"{PATH}/neondb", {}, None),
        response=None,
        returns=DatabaseDeleted(),
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await check_call(call)


@pytest.mark.virtual_time
async def test_database_is_created_renamed_and_deleted(
    neon: NeonClient, project_id: str, branch_id: str
) -> None:
    [original] = await neon.databases.list(project_id, branch_id)
    created = await neon.databases.create(
        project_id, branch_id, name="shop", owner_name=original.owner_name, wait=True
    )
    assert created.database in await neon.databases.list(project_id, branch_id)
    await neon.databases.update(project_id, branch_id, "shop", name="store", wait=True)
    assert (await neon.databases.get(project_id, branch_id, "store")).id == created.database.id
    await neon.databases.delete(project_id, branch_id, "store", wait=True)
    assert await neon.databases.delete(project_id, branch_id, "store") == DatabaseDeleted()
    assert await neon.databases.list(project_id, branch_id) == [original]
