from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from neonctl_async import ConflictError, EndpointSettings, EndpointSpec, NeonClient, NotFoundError
from neonctl_async.types import (
    Annotation,
    BranchDeleted,
    BranchRecovered,
    BranchUpdated,
    Endpoint,
    EndpointType,
    OperationsResponse,
)
from tests.models.records import ENDPOINT, decode
from tests.resources.wire import (
    Call,
    Response,
    SentRequest,
    record,
    records_in,
    responding_in_sequence,
    responding_with,
)
from tests.support.records import PROJECT, JsonObject, branch_json, operation_json

PATH = f"/projects/{PROJECT}/branches"
BRANCH_ID = "br-quiet-sun-87654321"
CREATED: JsonObject = {
    "branch": branch_json(),
    "endpoints": [],
    "operations": [operation_json()],
    "roles": [],
    "databases": [],
}
CHANGED: JsonObject = {"branch": branch_json(), "operations": [operation_json()]}
OPERATIONS: JsonObject = {"operations": [operation_json()]}
ANNOTATION: JsonObject = {"object": {"type": "branch", "id": BRANCH_ID}, "value": {"team": "shop"}}


async def test_list_sends_every_parameter() -> None:
    async with responding_with({"branches": [branch_json()]}) as exchange:
        listing = exchange.neon.branches.list(
            PROJECT,
            limit=10_000,
            search="pre view",
            sort_by="created_at",
            sort_order="asc",
            include_deleted=True,
        )
        [branch] = await listing.collect()
    assert branch.id == BRANCH_ID
    assert exchange.sent == SentRequest(
        "GET",
        PATH,
        {
            "limit": "10000",
            "search": "pre view",
            "sort_by": "created_at",
            "sort_order": "asc",
            "include_deleted": "true",
        },
        None,
    )


async def test_list_does_not_send_unset_parameters() -> None:
    async with responding_with({"branches": []}) as exchange:
        assert await exchange.neon.branches.list(PROJECT).collect() == []
    assert exchange.sent == SentRequest("GET", PATH, {}, None)


async def test_get_returns_the_branch() -> None:
    async with responding_with({"branch": branch_json()}) as exchange:
        branch = await exchange.neon.branches.get(PROJECT, BRANCH_ID)
    assert (branch.id, branch.name, branch.current_state) == (BRANCH_ID, "preview", "init")
    assert branch.annotation is None
    assert exchange.sent == SentRequest("GET", f"{PATH}/{BRANCH_ID}", {}, None)


async def test_get_includes_the_annotation() -> None:
    async with responding_with({"branch": branch_json(), "annotation": ANNOTATION}) as exchange:
        branch = await exchange.neon.branches.get(PROJECT, BRANCH_ID)
    assert branch.annotation == decode(Annotation, ANNOTATION)


async def test_list_includes_the_annotations() -> None:
    content = {
        "branches": [branch_json("br-1"), branch_json("br-2")],
        "annotations": {"br-2": ANNOTATION},
    }
    async with responding_with(content) as exchange:
        listed = await exchange.neon.branches.list(PROJECT).collect()
    assert [branch.annotation for branch in listed] == [None, decode(Annotation, ANNOTATION)]


async def test_create_sends_every_parameter() -> None:
    async with responding_with(CREATED, 201) as exchange:
        created = await exchange.neon.branches.create(
            PROJECT,
            name="preview",
            parent_id="br-parent",
            parent_lsn="0/1E88FA8",
            parent_timestamp=datetime(2026, 1, 1, 14, 30, tzinfo=timezone(timedelta(hours=2))),
            protected=False,
            archived=True,
            init_source="schema-only",
            expires_at=datetime(2026, 2, 1, tzinfo=UTC),
            endpoints=[
                EndpointSpec(type=EndpointType.READ_WRITE),
                EndpointSpec(
                    type="read_only",
                    autoscaling_limit_min_cu=0.25,
                    autoscaling_limit_max_cu=2,
                    provisioner="k8s-neonvm",
                    suspend_timeout_seconds=0,
                    settings=EndpointSettings(pg_settings={"work_mem": "8MB"}),
                ),
            ],
            annotation_value={"team": "shop"},
        )
    assert created.branch.id == BRANCH_ID
    assert [operation.id for operation in created.operations] == ["op-1"]
    method, path, query, body = exchange.sent
    assert (method, path, query) == ("POST", PATH, {})
    assert body == {
        "branch": {
            "name": "preview",
            "parent_id": "br-parent",
            "parent_lsn": "0/1E88FA8",
            "parent_timestamp": "2026-01-01T14:30:00+02:00",
            "protected": False,
            "archived": True,
            "init_source": "schema-only",
            "expires_at": "2026-02-01T00:00:00Z",
        },
        "endpoints": [
            {"type": "read_write"},
            {
                "type": "read_only",
                "autoscaling_limit_min_cu": 0.25,
                "autoscaling_limit_max_cu": 2,
                "provisioner": "k8s-neonvm",
                "suspend_timeout_seconds": 0,
                "settings": {"pg_settings": {"work_mem": "8MB"}},
            },
        ],
        "annotation_value": {"team": "shop"},
    }


async def test_create_does_not_send_unset_parameters() -> None:
    async with responding_with(CREATED, 201) as exchange:
        await exchange.neon.branches.create(PROJECT)
    assert exchange.sent == SentRequest("POST", PATH, {}, {})


async def test_create_sends_false() -> None:
    async with responding_with(CREATED, 201) as exchange:
        await exchange.neon.branches.create(PROJECT, archived=False)
    assert exchange.sent.body == {"branch": {"archived": False}}


async def test_create_sends_the_documented_body() -> None:
    computes = [EndpointSpec(type="read_write")]
    async with responding_with(CREATED, 201) as exchange:
        await exchange.neon.branches.create(PROJECT, name="preview", endpoints=tuple(computes))
    documented = {"branch": {"name": "preview"}, "endpoints": [{"type": "read_write"}]}
    assert exchange.sent.body == documented


@pytest.mark.parametrize("name", ["endpoints", "roles", "databases", "connection_uris"])
async def test_null_list_in_the_response_is_empty(name: str) -> None:
    async with responding_with({**CREATED, name: None}, 201) as exchange:
        created = await exchange.neon.branches.create(PROJECT)
    assert created.branch.id == BRANCH_ID


@pytest.mark.parametrize(("wait", "kind"), [(-1, ValueError), ("yes", TypeError)])
async def test_invalid_wait_is_rejected_before_the_request(
    wait: float, kind: type[Exception]
) -> None:
    async with responding_with(CREATED, 201) as exchange:
        with pytest.raises(kind, match=r"(timeout|wait) is"):
            await exchange.neon.branches.create(PROJECT, wait=wait)
        with pytest.raises(kind, match=r"(timeout|wait) is"):
            await exchange.neon.branches.delete(PROJECT, BRANCH_ID, wait=wait)
    assert exchange.server.received == []


async def test_create_raises_conflict_error() -> None:
    async with responding_with({"code": "", "message": "name taken"}, 409) as exchange:
        with pytest.raises(ConflictError, match="name taken"):
            await exchange.neon.branches.create(PROJECT, name="preview")
    assert exchange.sent.method == "POST"


async def test_delete_returns_the_branch() -> None:
    content = {"branch": branch_json(), "operations": [operation_json()]}
    async with responding_with(content) as exchange:
        deleted = await exchange.neon.branches.delete(PROJECT, BRANCH_ID)
    assert deleted.branch is not None
    assert deleted.branch.id == BRANCH_ID
    assert [operation.id for operation in deleted.operations] == ["op-1"]
    assert exchange.sent == SentRequest("DELETE", f"{PATH}/{BRANCH_ID}", {}, None)


@pytest.mark.parametrize("wait", [False, True, 5.0])
async def test_delete_accepts_an_empty_response(wait: bool | float) -> None:
    async with responding_with(status=204, body=b"") as exchange:
        deleted = await exchange.neon.branches.delete(PROJECT, BRANCH_ID, wait=wait)
    assert deleted == BranchDeleted(branch=None, operations=[])
    assert len(exchange.server.received) == 1


@pytest.mark.parametrize(("hard", "sent"), [(True, "true"), (False, "false")])
async def test_delete_sends_hard_delete(hard: bool, sent: str) -> None:
    async with responding_with(status=204, body=b"") as exchange:
        await exchange.neon.branches.delete(PROJECT, BRANCH_ID, hard_delete=hard)
    assert exchange.sent.query == {"hard_delete": sent}


async def test_ids_are_percent_encoded() -> None:
    async with responding_with({"message": "no such branch"}, 404) as exchange:
        with pytest.raises(NotFoundError):
            await exchange.neon.branches.get("a b", "%2e%2e?x#y")
    assert exchange.sent.path == "/projects/a%20b/branches/%252e%252e%3Fx%23y"


UPDATED = record(BranchUpdated, CHANGED)
STARTED = record(OperationsResponse, OPERATIONS)

CALLS = [
    Call(lambda neon: neon.branches.count(PROJECT), f"GET {PATH}/count", Response({"count": 2}, 2)),
    Call(
        lambda neon: neon.branches.count(PROJECT, search="pre view"),
        f"GET {PATH}/count",
        Response({"count": 0}, 0),
        query={"search": "pre view"},
    ),
    Call(
        lambda neon: neon.branches.update(PROJECT, "br-1"),
        f"PATCH {PATH}/br-1",
        UPDATED,
        body={"branch": {}},
    ),
    Call(
        lambda neon: neon.branches.update(
            PROJECT,
            "br-1",
            name="shop",
            protected=False,
            expires_at=datetime(2026, 2, 1, tzinfo=UTC),
        ),
        f"PATCH {PATH}/br-1",
        UPDATED,
        body={"branch": {"name": "shop", "protected": False, "expires_at": "2026-02-01T00:00:00Z"}},
    ),
    Call(
        lambda neon: neon.branches.update(PROJECT, "br-1", expires_at=None),
        f"PATCH {PATH}/br-1",
        UPDATED,
        body={"branch": {"expires_at": None}},
    ),
    Call(
        lambda neon: neon.branches.set_as_default(PROJECT, "br-1"),
        f"POST {PATH}/br-1/set_as_default",
        UPDATED,
    ),
    Call(
        lambda neon: neon.branches.restore(PROJECT, "br-1", source_branch_id="br-2"),
        f"POST {PATH}/br-1/restore",
        UPDATED,
        body={"source_branch_id": "br-2"},
    ),
    Call(
        lambda neon: neon.branches.restore(
            PROJECT,
            "br-1",
            source_branch_id="br-1",
            source_lsn="0/1",
            source_timestamp=datetime(2026, 2, 1, tzinfo=UTC),
            preserve_under_name="before",
        ),
        f"POST {PATH}/br-1/restore",
        UPDATED,
        body={
            "source_branch_id": "br-1",
            "source_lsn": "0/1",
            "source_timestamp": "2026-02-01T00:00:00Z",
            "preserve_under_name": "before",
        },
    ),
    Call(
        lambda neon: neon.branches.finalize_restore(PROJECT, "br-1"),
        f"POST {PATH}/br-1/finalize_restore",
        STARTED,
    ),
    Call(
        lambda neon: neon.branches.finalize_restore(PROJECT, "br-1", name="before"),
        f"POST {PATH}/br-1/finalize_restore",
        STARTED,
        body={"name": "before"},
    ),
    Call(
        lambda neon: neon.branches.recover(PROJECT, "br-1"),
        f"POST {PATH}/br-1/recover",
        record(BranchRecovered, {"branch": branch_json()}),
    ),
    Call(
        lambda neon: neon.branches.list_endpoints(PROJECT, "br-1"),
        f"GET {PATH}/br-1/endpoints",
        records_in("endpoints", Endpoint, ENDPOINT),
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()


def page(*ids: str, default: str = "", cursor: str | None = None) -> JsonObject:
    """Return a page of branches. ``default`` is the id of the default branch."""
    branches = [{**branch_json(id), "default": id == default} for id in ids]
    return {"branches": branches, "pagination": {"next": cursor}}


async def test_default_reads_pages_until_it_finds_the_default_branch() -> None:
    async with responding_in_sequence(
        page("br-1", cursor="2"), page("br-2", "br-3", default="br-3", cursor="3"), page("br-4")
    ) as exchange:
        found = await exchange.neon.branches.default(PROJECT)
    assert (found.id, found.default) == ("br-3", True)
    order = {"limit": "100", "sort_by": "created_at", "sort_order": "asc"}
    assert [request.query for request in exchange.all_sent] == [order, {**order, "cursor": "2"}]


async def test_default_raises_lookup_error_without_default_branch() -> None:
    async with responding_in_sequence(page("br-1", cursor="2"), page("br-2")) as exchange:
        with pytest.raises(LookupError, match=f"{PROJECT} has no default branch"):
            await exchange.neon.branches.default(PROJECT)


@pytest.mark.parametrize("options", [{}, {"preserve_under_name": "before"}])
async def test_reset_reads_the_parent_and_restores_from_it(options: Any) -> None:
    content = {"branch": {**branch_json(), "parent_id": "br-main"}}
    async with responding_in_sequence(content, CHANGED) as exchange:
        reset = await exchange.neon.branches.reset_from_parent(PROJECT, BRANCH_ID, **options)
    assert reset == decode(BranchUpdated, CHANGED)
    assert exchange.all_sent == [
        SentRequest("GET", f"{PATH}/{BRANCH_ID}", {}, None),
        SentRequest(
            "POST", f"{PATH}/{BRANCH_ID}/restore", {}, {"source_branch_id": "br-main", **options}
        ),
    ]


async def test_reset_rejects_a_root_branch() -> None:
    async with responding_with({"branch": branch_json()}) as exchange:
        with pytest.raises(ValueError, match=f"{BRANCH_ID} has no parent"):
            await exchange.neon.branches.reset_from_parent(PROJECT, BRANCH_ID)
    assert exchange.sent.method == "GET"


@pytest.mark.virtual_time
async def test_branch_is_reset_and_becomes_the_default(neon: NeonClient, project_id: str) -> None:
    created = await neon.branches.create(
        project_id, name="preview", expires_at=datetime(2026, 2, 1, tzinfo=UTC), wait=True
    )
    updated = await neon.branches.update(project_id, created.branch.id, expires_at=None)
    assert (created.branch.expires_at is None, updated.branch.expires_at) == (False, None)
    reset = await neon.branches.reset_from_parent(project_id, created.branch.id, wait=True)
    assert {operation.status for operation in reset.operations} == {"finished"}
    await neon.branches.set_as_default(project_id, created.branch.id, wait=True)
    assert (await neon.branches.default(project_id)).id == created.branch.id
    assert await neon.branches.count(project_id) == 2
