from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from msgspec import UNSET

from neonctl_async import (
    ConflictError,
    EndpointSettings,
    EndpointSpec,
    LookupFailedError,
    NeonClient,
)
from neonctl_async.provisioning.branches import Branches
from neonctl_async.resources.base import checked_expiry
from neonctl_async.types import (
    Annotation,
    Branch,
    BranchCreated,
    BranchDeleted,
    BranchRecovered,
    BranchUpdated,
    Endpoint,
    EndpointType,
    OperationsResponse,
)
from neonctl_async.waiting.waiter import Wait
from neonctl_local import Fault, LocalControlPlane
from tests.models.records import BRANCH, ENDPOINT, OPERATION, JsonObject, decode
from tests.resources.wire import (
    Call,
    Response,
    SentRequest,
    no_content,
    record,
    record_in,
    records_in,
    responding_in_sequence,
    responding_with,
)

PATH = "/projects/p-1/branches"
FEBRUARY = datetime(2026, 2, 1, tzinfo=UTC)
CHANGED: JsonObject = {"branch": BRANCH, "operations": [OPERATION]}
CREATED_JSON: JsonObject = {**CHANGED, "endpoints": [], "roles": [], "databases": []}
CREATED = record(BranchCreated, CREATED_JSON, status=201)
UPDATED = record(BranchUpdated, CHANGED)
STARTED = record(OperationsResponse, {"operations": [OPERATION]})
NO_BRANCH = no_content(BranchDeleted(branch=None, operations=[]))
SPEC: dict[str, Any] = {
    "name": "preview",
    "parent_id": "br-parent",
    "parent_lsn": "0/1E88FA8",
    "protected": False,
    "archived": True,
    "init_source": "schema-only",
}
ANNOTATION: JsonObject = {"object": {"type": "branch", "id": "br-1"}, "value": {"team": "shop"}}
NONE_LISTED = Response({"branches": []}, [])
FOUND = record_in("branch", Branch, BRANCH)
DELETED = record(BranchDeleted, CHANGED)
RECOVERED = record(BranchRecovered, {"branch": BRANCH})

CALLS = [
    Call(lambda neon: neon.branches.list("p-1").collect(), f"GET {PATH}", NONE_LISTED),
    Call(
        lambda neon: neon.branches.list(
            "p-1",
            limit=10_000,
            search="pre view",
            sort_by="created_at",
            sort_order="asc",
            include_deleted=True,
        ).collect(),
        f"GET {PATH}",
        records_in("branches", Branch, BRANCH),
        query={
            "limit": "10000",
            "search": "pre view",
            "sort_by": "created_at",
            "sort_order": "asc",
            "include_deleted": "true",
        },
    ),
    Call(lambda neon: neon.branches.get("p-1", "br-1"), f"GET {PATH}/br-1", FOUND),
    Call(
        lambda neon: neon.branches.get("a b", "%2e%2e?x#y"),
        "GET /projects/a%20b/branches/%252e%252e%3Fx%23y",
        FOUND,
    ),
    Call(lambda neon: neon.branches.count("p-1"), f"GET {PATH}/count", Response({"count": 2}, 2)),
    Call(
        lambda neon: neon.branches.count("p-1", search="pre view"),
        f"GET {PATH}/count",
        Response({"count": 0}, 0),
        query={"search": "pre view"},
    ),
    Call(lambda neon: neon.branches.create("p-1"), f"POST {PATH}", CREATED, body={}),
    Call(
        lambda neon: neon.branches.create("p-1", archived=False),
        f"POST {PATH}",
        CREATED,
        body={"branch": {"archived": False}},
    ),
    Call(
        lambda neon: neon.branches.create(
            "p-1", name="preview", endpoints=(EndpointSpec(type="read_write"),)
        ),
        f"POST {PATH}",
        CREATED,
        body={"branch": {"name": "preview"}, "endpoints": [{"type": "read_write"}]},
    ),
    Call(
        lambda neon: neon.branches.create(
            "p-1",
            **SPEC,
            parent_timestamp=datetime(2026, 1, 1, 14, 30, tzinfo=timezone(timedelta(hours=2))),
            expires_at=FEBRUARY,
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
        ),
        f"POST {PATH}",
        CREATED,
        body={
            "branch": SPEC
            | {
                "parent_timestamp": "2026-01-01T14:30:00+02:00",
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
        },
    ),
    Call(
        lambda neon: neon.branches.update("p-1", "br-1"),
        f"PATCH {PATH}/br-1",
        UPDATED,
        body={"branch": {}},
    ),
    Call(
        lambda neon: neon.branches.update(
            "p-1", "br-1", name="shop", protected=False, expires_at=FEBRUARY
        ),
        f"PATCH {PATH}/br-1",
        UPDATED,
        body={"branch": {"name": "shop", "protected": False, "expires_at": "2026-02-01T00:00:00Z"}},
    ),
    Call(
        lambda neon: neon.branches.update("p-1", "br-1", expires_at=None),
        f"PATCH {PATH}/br-1",
        UPDATED,
        body={"branch": {"expires_at": None}},
    ),
    Call(lambda neon: neon.branches.delete("p-1", "br-1"), f"DELETE {PATH}/br-1", DELETED),
    Call(
        lambda neon: neon.branches.delete("p-1", "br-1", hard_delete=True),
        f"DELETE {PATH}/br-1",
        NO_BRANCH,
        query={"hard_delete": "true"},
    ),
    Call(
        lambda neon: neon.branches.delete("p-1", "br-1", hard_delete=False),
        f"DELETE {PATH}/br-1",
        NO_BRANCH,
        query={"hard_delete": "false"},
    ),
    Call(
        lambda neon: neon.branches.set_as_default("p-1", "br-1"),
        f"POST {PATH}/br-1/set_as_default",
        UPDATED,
    ),
    Call(
        lambda neon: neon.branches.restore("p-1", "br-1", source_branch_id="br-2"),
        f"POST {PATH}/br-1/restore",
        UPDATED,
        body={"source_branch_id": "br-2"},
    ),
    Call(
        lambda neon: neon.branches.restore(
            "p-1",
            "br-1",
            source_branch_id="br-1",
            source_lsn="0/1",
            source_timestamp=FEBRUARY,
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
        lambda neon: neon.branches.finalize_restore("p-1", "br-1"),
        f"POST {PATH}/br-1/finalize_restore",
        STARTED,
    ),
    Call(
        lambda neon: neon.branches.finalize_restore("p-1", "br-1", name="before"),
        f"POST {PATH}/br-1/finalize_restore",
        STARTED,
        body={"name": "before"},
    ),
    Call(lambda neon: neon.branches.recover("p-1", "br-1"), f"POST {PATH}/br-1/recover", RECOVERED),
    Call(
        lambda neon: neon.branches.list_endpoints("p-1", "br-1"),
        f"GET {PATH}/br-1/endpoints",
        records_in("endpoints", Endpoint, ENDPOINT),
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()


async def test_get_includes_the_annotation() -> None:
    async with responding_with({"branch": BRANCH, "annotation": ANNOTATION}) as exchange:
        branch = await exchange.neon.branches.get("p-1", "br-1")
    assert branch.annotation == decode(Annotation, ANNOTATION)


async def test_list_includes_the_annotations() -> None:
    branches = [{**BRANCH, "id": "br-0"}, BRANCH]
    content = {"branches": branches, "annotations": {"br-1": ANNOTATION}}
    async with responding_with(content) as exchange:
        listed = await exchange.neon.branches.list("p-1").collect()
    assert [branch.annotation for branch in listed] == [None, decode(Annotation, ANNOTATION)]


@pytest.mark.parametrize("name", ["endpoints", "roles", "databases", "connection_uris"])
async def test_null_list_in_the_response_is_empty(name: str) -> None:
    async with responding_with({**CREATED_JSON, name: None}, 201) as exchange:
        assert await exchange.neon.branches.create("p-1") == CREATED.result


@pytest.mark.parametrize("wait", [False, True, 5.0])
async def test_delete_accepts_an_empty_response(wait: Wait) -> None:
    call = Call(
        lambda neon: neon.branches.delete("p-1", "br-1", wait=wait),
        f"DELETE {PATH}/br-1",
        NO_BRANCH,
    )
    await call.check()


@pytest.mark.parametrize(("wait", "kind"), [(-1, ValueError), ("yes", TypeError)])
async def test_invalid_wait_is_rejected_before_the_request(
    wait: float, kind: type[Exception]
) -> None:
    async with responding_with(CREATED_JSON, 201) as exchange:
        with pytest.raises(kind, match=r"(timeout|wait) is"):
            await exchange.neon.branches.create("p-1", wait=wait)
        with pytest.raises(kind, match=r"(timeout|wait) is"):
            await exchange.neon.branches.delete("p-1", "br-1", wait=wait)
    assert exchange.server.received == []


EXPIRING: list[Callable[[Branches, datetime], Awaitable[object]]] = [
    lambda branches, at: branches.create("p-1", expires_at=at),
    lambda branches, at: branches.create_anonymized("p-1", expires_at=at),
    lambda branches, at: branches.update("p-1", "br-1", expires_at=at),
    lambda branches, at: branches.ensure("p-1", name="preview", expires_at=at),
]


@pytest.mark.parametrize("call", EXPIRING)
async def test_expiry_more_than_30_days_ahead_is_refused_before_the_request(
    call: Callable[[Branches, datetime], Awaitable[object]],
) -> None:
    async with responding_with(CREATED_JSON, 201) as exchange:
        with pytest.raises(
            ValueError, match=r"^expires_at is 2099-01-01T00:00:00\+00:00: Neon refu"
        ):
            await call(exchange.neon.branches, datetime(2099, 1, 1, tzinfo=UTC))
    assert exchange.server.received == []


def test_latest_expiry_is_30_days_ahead_in_whole_seconds() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    latest = datetime(2026, 1, 31, tzinfo=UTC)
    assert checked_expiry(latest, now) == latest
    assert checked_expiry(FEBRUARY, now + timedelta(days=2, seconds=0.5)) == FEBRUARY
    assert checked_expiry(now + timedelta(seconds=0.75), now) == now
    with pytest.raises(ValueError, match="expires_at is") as caught:
        checked_expiry(latest + timedelta(seconds=1), now)
    assert str(caught.value) == (
        "expires_at is 2026-01-31T00:00:01+00:00: Neon refuses more than 30 days ahead. Use "
        "2026-01-31T00:00:00+00:00 or earlier, and set a later time before the branch expires"
    )
    assert checked_expiry(None, now) is None
    assert checked_expiry(UNSET, now) is UNSET


async def test_create_raises_conflict_error() -> None:
    async with responding_with({"code": "", "message": "name taken"}, 409) as exchange:
        with pytest.raises(ConflictError, match="name taken"):
            await exchange.neon.branches.create("p-1", name="preview")
    assert exchange.sent.method == "POST"


def page(*ids: str, default: str = "", cursor: str | None = None) -> JsonObject:
    """Return a page of branches. ``default`` is the id of the default branch."""
    branches = [{**BRANCH, "id": id, "default": id == default} for id in ids]
    return {"branches": branches, "pagination": {"next": cursor}}


async def test_default_reads_pages_until_it_finds_the_default_branch() -> None:
    async with responding_in_sequence(
        page("br-1", cursor="2"), page("br-2", "br-3", default="br-3", cursor="3"), page("br-4")
    ) as exchange:
        found = await exchange.neon.branches.default("p-1")
    assert (found.id, found.default) == ("br-3", True)
    order = {"limit": "100", "sort_by": "created_at", "sort_order": "asc"}
    assert [request.query for request in exchange.all_sent] == [order, {**order, "cursor": "2"}]


async def test_default_raises_lookup_error_without_default_branch() -> None:
    async with responding_in_sequence(page("br-1", cursor="2"), page("br-2")) as exchange:
        with pytest.raises(LookupFailedError, match="p-1 has no default branch"):
            await exchange.neon.branches.default("p-1")


@pytest.mark.parametrize("options", [{}, {"preserve_under_name": "before"}])
async def test_reset_reads_the_parent_and_restores_from_it(options: Any) -> None:
    content = {"branch": {**BRANCH, "parent_id": "br-main"}}
    async with responding_in_sequence(content, CHANGED) as exchange:
        reset = await exchange.neon.branches.reset_from_parent("p-1", "br-1", **options)
    assert reset == UPDATED.result
    assert exchange.all_sent == [
        SentRequest("GET", f"{PATH}/br-1", {}, None),
        SentRequest("POST", f"{PATH}/br-1/restore", {}, {"source_branch_id": "br-main", **options}),
    ]


async def test_reset_rejects_a_root_branch() -> None:
    async with responding_with({"branch": BRANCH}) as exchange:
        with pytest.raises(ValueError, match="br-1 has no parent"):
            await exchange.neon.branches.reset_from_parent("p-1", "br-1")
    assert exchange.sent.method == "GET"


@pytest.mark.virtual_time
async def test_branch_is_reset_and_becomes_the_default(neon: NeonClient, project_id: str) -> None:
    created = await neon.branches.create(
        project_id, name="preview", expires_at=datetime(2026, 1, 31, tzinfo=UTC), wait=True
    )
    updated = await neon.branches.update(project_id, created.branch.id, expires_at=None)
    assert (created.branch.expires_at is None, updated.branch.expires_at) == (False, None)
    reset = await neon.branches.reset_from_parent(project_id, created.branch.id, wait=True)
    assert {operation.status for operation in reset.operations} == {"finished"}
    await neon.branches.set_as_default(project_id, created.branch.id, wait=True)
    assert (await neon.branches.default(project_id)).id == created.branch.id
    assert await neon.branches.count(project_id) == 2


async def test_uri_that_neon_leaves_out_is_requested_by_a_call_that_waits(
    neon: NeonClient, project_id: str
) -> None:
    main = (await neon.branches.default(project_id)).id
    await neon.roles.create(project_id, main, name="ada", wait=True)
    compute = [EndpointSpec(type="read_write")]
    created = await neon.branches.create(project_id, endpoints=compute)
    with pytest.raises(LookupError, match="more than one role or database: call"):
        _ = created.connection_uri
    created = await neon.branches.create(project_id, endpoints=compute, wait=True)
    [details] = created.connection_uris
    parts = details.connection_parameters
    assert (parts.role, parts.database) == ("neondb_owner", "neondb")
    [endpoint] = created.endpoints
    assert (parts.host, parts.pooler_host) == (
        endpoint.host,
        endpoint.host.replace(endpoint.id, f"{endpoint.id}-pooler"),
    )
    assert parts.password == details.connection_uri.password
    uri = await neon.branches.connection_uri(project_id, created.branch.id)
    assert created.connection_uri.reveal() == uri.reveal()
    async with neon.branches.ephemeral(project_id, ttl_seconds=None) as branch:
        uri = await neon.branches.connection_uri(project_id, branch.branch.id)
        assert branch.connection_uri.reveal() == uri.reveal()


async def test_branch_whose_uri_cannot_be_requested_is_returned_without_it(
    neon: NeonClient, control_plane: LocalControlPlane, project_id: str
) -> None:
    main = (await neon.branches.default(project_id)).id
    await neon.roles.create(project_id, main, name="ada", wait=True)
    control_plane.inject(Fault(route="GET /projects/{project_id}/connection_uri", status=403))
    created = await neon.branches.create(
        project_id, endpoints=[EndpointSpec(type="read_write")], wait=True
    )
    assert created.endpoints
    assert created.connection_uris == []
