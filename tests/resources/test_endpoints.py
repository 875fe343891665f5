from typing import Any

import pytest

from neonctl_async import EndpointSettings, NeonClient
from neonctl_async.types import Endpoint, EndpointDeleted, EndpointUpdated, PreloadLibraries
from tests.models.records import ENDPOINT, OPERATION, JsonObject
from tests.resources.wire import Call, no_content, record, record_in, records_in

PATH = "/projects/p-1/endpoints"
CHANGED: JsonObject = {"endpoint": ENDPOINT, "operations": [OPERATION]}
UPDATED = record(EndpointUpdated, CHANGED)
DELETED = record(EndpointDeleted, CHANGED)
LISTED = records_in("endpoints", Endpoint, ENDPOINT)
FOUND = record_in("endpoint", Endpoint, ENDPOINT)
SETTINGS = EndpointSettings(
    pg_settings={"work_mem": "8MB"}, preload_libraries=PreloadLibraries(use_defaults=True)
)
SENT_SETTINGS: JsonObject = {
    "pg_settings": {"work_mem": "8MB"},
    "preload_libraries": {"use_defaults": True},
}
NEW: dict[str, Any] = {"branch_id": "br-1", "type": "read_only", "region_id": "aws-us-east-2"}
SPEC: dict[str, Any] = {
    "name": "writer",
    "autoscaling_limit_min_cu": 0.25,
    "autoscaling_limit_max_cu": 2,
    "provisioner": "k8s-neonvm",
    "disabled": False,
    "passwordless_access": True,
    "suspend_timeout_seconds": -1,
}

CALLS = [
    Call(lambda neon: neon.endpoints.list("p-1"), f"GET {PATH}", LISTED),
    Call(lambda neon: neon.endpoints.get("p-1", "ep-1"), f"GET {PATH}/ep-1", FOUND),
    Call(
        lambda neon: neon.endpoints.create("p-1", branch_id="br-1", type="read_write"),
        f"POST {PATH}",
        UPDATED,
        body={"endpoint": {"branch_id": "br-1", "type": "read_write"}},
    ),
    Call(
        lambda neon: neon.endpoints.create("p-1", settings=SETTINGS, **NEW, **SPEC),
        f"POST {PATH}",
        UPDATED,
        body={"endpoint": {**NEW, **SPEC, "settings": SENT_SETTINGS}},
    ),
    Call(
        lambda neon: neon.endpoints.update("p-1", "ep-1"),
        f"PATCH {PATH}/ep-1",
        UPDATED,
        body={"endpoint": {}},
    ),
    Call(
        lambda neon: neon.endpoints.update("p-1", "ep-1", settings=SETTINGS, **SPEC),
        f"PATCH {PATH}/ep-1",
        UPDATED,
        body={"endpoint": {**SPEC, "settings": SENT_SETTINGS}},
    ),
    Call(lambda neon: neon.endpoints.delete("p-1", "ep-1"), f"DELETE {PATH}/ep-1", DELETED),
    Call(
        lambda neon: neon.endpoints.delete("p-1", "ep-1", wait=True),
        f"DELETE {PATH}/ep-1",
        no_content(EndpointDeleted()),
    ),
    Call(lambda neon: neon.endpoints.start("p-1", "ep-1"), f"POST {PATH}/ep-1/start", UPDATED),
    Call(lambda neon: neon.endpoints.suspend("p-1", "ep-1"), f"POST {PATH}/ep-1/suspend", UPDATED),
    Call(lambda neon: neon.endpoints.restart("p-1", "ep-1"), f"POST {PATH}/ep-1/restart", UPDATED),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()


@pytest.mark.virtual_time
async def test_compute_is_suspended_and_started(neon: NeonClient, project_id: str) -> None:
    [compute] = await neon.endpoints.list(project_id)
    await neon.endpoints.suspend(project_id, compute.id, wait=True)
    assert (await neon.endpoints.get(project_id, compute.id)).current_state == "idle"
    started = await neon.endpoints.start(project_id, compute.id, wait=True)
    assert [(operation.action, operation.status) for operation in started.operations] == [
        ("start_compute", "finished")
    ]
    assert (await neon.endpoints.get(project_id, compute.id)).current_state == "active"


@pytest.mark.virtual_time
async def test_read_only_compute_is_created_and_deleted(
    neon: NeonClient, project_id: str, branch_id: str
) -> None:
    [writer] = await neon.endpoints.list(project_id)
    created = await neon.endpoints.create(
        project_id, branch_id=branch_id, type="read_only", wait=True
    )
    changed = await neon.endpoints.update(project_id, created.endpoint.id, name="reader")
    assert changed.endpoint.name == "reader"
    await neon.endpoints.delete(project_id, created.endpoint.id, wait=True)
    assert await neon.endpoints.delete(project_id, created.endpoint.id) == EndpointDeleted()
    remaining = await neon.branches.list_endpoints(project_id, branch_id)
    assert [compute.id for compute in remaining] == [writer.id]
