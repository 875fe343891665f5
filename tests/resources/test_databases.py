import pytest

from neonctl_async import NeonClient
from neonctl_async.types import Database, DatabaseDeleted, DatabaseUpdated
from tests.models.records import DATABASE, OPERATION, JsonObject, decode
from tests.resources.wire import Asked, Call, check

PATH = "/projects/p-1/branches/br-1/databases"
CHANGED: JsonObject = {"database": DATABASE, "operations": [OPERATION]}
OPERATIONS = decode(DatabaseUpdated, CHANGED)
SPEC: JsonObject = {"name": "shop", "owner_name": "ada"}

CALLS = [
    Call(
        lambda neon: neon.databases.list("p-1", "br-1"),
        asks=Asked("GET", PATH, {}, None),
        shown={"databases": [DATABASE]},
        gives=[decode(Database, DATABASE)],
    ),
    Call(
        lambda neon: neon.databases.get("p-1", "br-1", "the shop"),
        asks=Asked("GET", f"{PATH}/the%20shop", {}, None),
        shown={"database": DATABASE},
        gives=decode(Database, DATABASE),
    ),
    Call(
        lambda neon: neon.databases.create("p-1", "br-1", name="shop", owner_name="ada"),
        asks=Asked("POST", PATH, {}, {"database": SPEC}),
        shown=CHANGED,
        gives=OPERATIONS,
    ),
    Call(
        lambda neon: neon.databases.update("p-1", "br-1", "neondb"),
        asks=Asked("PATCH", f"{PATH}/neondb", {}, {"database": {}}),
        shown=CHANGED,
        gives=OPERATIONS,
    ),
    Call(
        lambda neon: neon.databases.update("p-1", "br-1", "neondb", name="shop", owner_name="ada"),
        asks=Asked("PATCH", f"{PATH}/neondb", {}, {"database": SPEC}),
        shown=CHANGED,
        gives=OPERATIONS,
    ),
    Call(
        lambda neon: neon.databases.delete("p-1", "br-1", "neondb"),
        asks=Asked("DELETE", f"{PATH}/neondb", {}, None),
        shown=CHANGED,
        gives=decode(DatabaseDeleted, CHANGED),
    ),
    Call(
        lambda neon: neon.databases.delete("p-1", "br-1", "neondb", wait=True),
        asks=Asked("DELETE", f"{PATH}/neondb", {}, None),
        shown=None,
        gives=DatabaseDeleted(),
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_what_it_asks_and_gives(call: Call) -> None:
    await check(call)


@pytest.mark.virtual_time
async def test_a_database_comes_is_renamed_and_goes(
    neon: NeonClient, project_id: str, branch_id: str
) -> None:
    [first] = await neon.databases.list(project_id, branch_id)
    created = await neon.databases.create(
        project_id, branch_id, name="shop", owner_name=first.owner_name, wait=True
    )
    assert created.database in await neon.databases.list(project_id, branch_id)
    await neon.databases.update(project_id, branch_id, "shop", name="store", wait=True)
    assert (await neon.databases.get(project_id, branch_id, "store")).id == created.database.id
    await neon.databases.delete(project_id, branch_id, "store", wait=True)
    assert await neon.databases.delete(project_id, branch_id, "store") == DatabaseDeleted()
    assert await neon.databases.list(project_id, branch_id) == [first]
