from typing import Any

import pytest

from neonctl_async import NeonClient
from neonctl_async.types import Database, DatabaseDeleted, DatabaseUpdated
from tests.models.records import DATABASE, OPERATION, JsonObject
from tests.resources.wire import Call, no_content, record, record_in, records_in

PATH = "/projects/p-1/branches/br-1/databases"
CHANGED: JsonObject = {"database": DATABASE, "operations": [OPERATION]}
UPDATED = record(DatabaseUpdated, CHANGED)
SPEC: dict[str, Any] = {"name": "shop", "owner_name": "ada"}
DELETED = record(DatabaseDeleted, CHANGED)
LISTED = records_in("databases", Database, DATABASE)
FOUND = record_in("database", Database, DATABASE)

CALLS = [
    Call(lambda neon: neon.databases.list("p-1", "br-1"), f"GET {PATH}", LISTED),
    Call(
        lambda neon: neon.databases.get("p-1", "br-1", "the shop"), f"GET {PATH}/the%20shop", FOUND
    ),
    Call(
        lambda neon: neon.databases.create("p-1", "br-1", **SPEC),
        f"POST {PATH}",
        UPDATED,
        body={"database": SPEC},
    ),
    Call(
        lambda neon: neon.databases.update("p-1", "br-1", "neondb"),
        f"PATCH {PATH}/neondb",
        UPDATED,
        body={"database": {}},
    ),
    Call(
        lambda neon: neon.databases.update("p-1", "br-1", "neondb", **SPEC),
        f"PATCH {PATH}/neondb",
        UPDATED,
        body={"database": SPEC},
    ),
    Call(
        lambda neon: neon.databases.delete("p-1", "br-1", "neondb"),
        f"DELETE {PATH}/neondb",
        DELETED,
    ),
    Call(
        lambda neon: neon.databases.delete("p-1", "br-1", "neondb", wait=True),
        f"DELETE {PATH}/neondb",
        no_content(DatabaseDeleted()),
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()


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
