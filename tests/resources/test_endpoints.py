import pytest

from neonctl_async import EndpointSettings, NeonClient
from neonctl_async.types import Endpoint, EndpointDeleted, EndpointUpdated, PreloadLibraries
from tests.models.records import ENDPOINT, OPERATION, JsonObject, decode
from tests.resources.wire import Call, SentRequest, check_call

PATH = "/projects/p-1/endpoints"
CHANGED: JsonObject = {"endpoint": ENDPOINT, "operations": [OPERATION]}
UPDATED = decode(EndpointUpdated, CHANGED)
SETTINGS = EndpointSettings(
    pg_settings={"work_mem": "8MB"}, preload_libraries=PreloadLibraries(use_defaults=True)
)
SPEC: JsonObject = {
    "name": "writer",
    "settings": {
        "pg_settings": {"work_mem": "8MB"},
        "preload_libraries": {"use_defaults": True},
    },
    "autoscaling_limit_min_cu": 0.25,
    "autoscaling_limit_max_cu": 2,
    "provisioner": "k8s-neonvm",
    "disabled": False,
    "passwordless_access": True,
    "suspend_timeout_seconds": -1,
}

CALLS = [
    Call(
        lambda neon: neon.endpoints.list("p-1"),
        sends=SentRequest("GET", PATH, {}, None),
        response={"endpoints": [ENDPOINT]},
        returns=[decode(Endpoint, ENDPOINT)],
    ),
    Call(
        lambda neon: neon.endpoints.get("p-1", "ep-1"),
        sends=SentRequest("GET", f"{PATH}/ep-1", {}, None),
        response={"endpoint": ENDPOINT},
        returns=decode(Endpoint, ENDPOINT),
    ),
    Call(
        lambda neon: neon.endpoints.create("p-1", branch_id="br-1", type="read_write"),
        sends=SentRequest(
            "POST", PATH, {}, {"endpoint": {"branch_id": "br-1", "type": "read_write"}}
        ),
        response=CHANGED,
        returns=UPDATED,
    ),
    Call(
        lambda neon: neon.endpoints.create(
            "p-1",
            branch_id="br-1",
            type="read_only",
            name="writer",
            region_id="aws-us-east-2",
            settings=SETTINGS,
            autoscaling_limit_min_cu=0.25,
            autoscaling_limit_max_cu=2,
            provisioner="k8s-neonvm",
            disabled=False,
            passwordless_access=True,
            suspend_timeout_seconds=-1,
        ),
        sends=SentRequest(
            "POST",
            PATH,
            {},
            {
                "endpoint": {
                    "branch_id": "br-1",
                    "type": "read_only",
                    "region_id": "aws-us-east-2",
                    **SPEC,
                }
            },
        ),
        response=CHANGED,
        returns=UPDATED,
    ),
    Call(
        lambda neon: neon.endpoints.update("p-1", "ep-1"),
        sends=SentRequest("PATCH", f"{PATH}/ep-1", {}, {"endpoint": {}}),
        response=CHANGED,
        returns=UPDATED,
    ),
    Call(
        lambda neon: neon.endpoints.update(
            "p-1",
            "ep-1",
            name="writer",
            settings=SETTINGS,
            autoscaling_limit_min_cu=0.25,
            autoscaling_limit_max_cu=2,
            provisioner="k8s-neonvm",
            disabled=False,
            passwordless_access=True,
            suspend_timeout_seconds=-1,
        ),
        sends=SentRequest("PATCH", f"{PATH}/ep-1", {}, {"endpoint": SPEC}),
        response=CHANGED,
        returns=UPDATED,
    ),
    Call(
        lambda neon: neon.endpoints.delete("p-1", "ep-1"),
        sends=SentRequest("DELETE", f"{PATH}/ep-1", {}, None),
        response=CHANGED,
        returns=decode(EndpointDeleted, CHANGED),
    ),
    Call(
        lambda neon: neon.endpoints.delete("p-1", "ep-1", wait=True),
        sends=SentRequest("DELETE", f"{PATH}/ep-1", {}, None),
        response=None,
        returns=EndpointDeleted(),
    ),
    Call(
        lambda neon: neon.endpoints.start("p-1", "ep-1"),
        sends=SentRequest("POST", f"{PATH}/ep-1/start", {}, None),
        response=CHANGED,
        returns=UPDATED,
    ),
    Call(
        lambda neon: neon.endpoints.suspend("p-1", "ep-1"),
        sends=SentRequest("POST", f"{PATH}/ep-1/suspend", {}, None),
        response=CHANGED,
        returns=UPDATED,
    ),
    Call(
        lambda neon: neon.endpoints.restart("p-1", "ep-1"),
        sends=SentRequest("POST", f"{PATH}/ep-1/restart", {}, None),
        response=CHANGED,
        returns=UPDATED,
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await check_call(call)


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
