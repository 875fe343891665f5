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
from tests.resources.wire import Asked, Call, answering, answering_in_turn, check
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
STARTED: JsonObject = {"operations": [operation_json()]}
NOTE: JsonObject = {"object": {"type": "branch", "id": BRANCH_ID}, "value": {"team": "shop"}}


async def test_list_with_every_keyword() -> None:
    async with answering({"branches": [branch_json()]}) as exchange:
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
    assert exchange.asked == Asked(
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


async def test_list_leaves_out_what_is_unset() -> None:
    async with answering({"branches": []}) as exchange:
        assert await exchange.neon.branches.list(PROJECT).collect() == []
    assert exchange.asked == Asked("GET", PATH, {}, None)


async def test_get() -> None:
    async with answering({"branch": branch_json()}) as exchange:
        branch = await exchange.neon.branches.get(PROJECT, BRANCH_ID)
    assert (branch.id, branch.name, branch.current_state) == (BRANCH_ID, "preview", "init")
    assert branch.annotation is None
    assert exchange.asked == Asked("GET", f"{PATH}/{BRANCH_ID}", {}, None)


async def test_an_annotation_comes_with_its_branch() -> None:
    async with answering({"branch": branch_json(), "annotation": NOTE}) as exchange:
        branch = await exchange.neon.branches.get(PROJECT, BRANCH_ID)
    assert branch.annotation == decode(Annotation, NOTE)


async def test_annotations_come_with_the_branches_of_a_list() -> None:
    shown = {"branches": [branch_json("br-1"), branch_json("br-2")], "annotations": {"br-2": NOTE}}
    async with answering(shown) as exchange:
        listed = await exchange.neon.branches.list(PROJECT).collect()
    assert [branch.annotation for branch in listed] == [None, decode(Annotation, NOTE)]


async def test_create_with_every_keyword() -> None:
    async with answering(CREATED, 201) as exchange:
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
    method, path, query, body = exchange.asked
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


async def test_create_leaves_out_what_is_unset() -> None:
    async with answering(CREATED, 201) as exchange:
        await exchange.neon.branches.create(PROJECT)
    assert exchange.asked == Asked("POST", PATH, {}, {})


async def test_create_sends_false_and_not_unset() -> None:
    async with answering(CREATED, 201) as exchange:
        await exchange.neon.branches.create(PROJECT, archived=False)
    assert exchange.asked.body == {"branch": {"archived": False}}


async def test_create_as_the_documentation_shows_it() -> None:
    async with answering(CREATED, 201) as exchange:
        await exchange.neon.branches.create(
            PROJECT, name="preview", endpoints=(EndpointSpec(type="read_write"),)
        )
    assert exchange.asked.body == {
        "branch": {"name": "preview"},
        "endpoints": [{"type": "read_write"}],
    }


@pytest.mark.parametrize("name", ["endpoints", "roles", "databases", "connection_uris"])
async def test_a_null_among_the_answer_loses_no_branch(name: str) -> None:
    async with answering({**CREATED, name: None}, 201) as exchange:
        created = await exchange.neon.branches.create(PROJECT)
    assert created.branch.id == BRANCH_ID


@pytest.mark.parametrize(("wait", "kind"), [(-1, ValueError), ("yes", TypeError)])
async def test_an_impossible_wait_is_refused_before_anything_is_sent(
    wait: float, kind: type[Exception]
) -> None:
    async with answering(CREATED, 201) as exchange:
        with pytest.raises(kind, match=r"(timeout|wait) is"):
            await exchange.neon.branches.create(PROJECT, wait=wait)
        with pytest.raises(kind, match=r"(timeout|wait) is"):
            await exchange.neon.branches.delete(PROJECT, BRANCH_ID, wait=wait)
    assert exchange.server.received == []


async def test_create_in_conflict() -> None:
    async with answering({"code": "", "message": "name taken"}, 409) as exchange:
        with pytest.raises(ConflictError, match="name taken"):
            await exchange.neon.branches.create(PROJECT, name="preview")
    assert exchange.asked.method == "POST"


async def test_delete() -> None:
    shown = {"branch": branch_json(), "operations": [operation_json()]}
    async with answering(shown) as exchange:
        deleted = await exchange.neon.branches.delete(PROJECT, BRANCH_ID)
    assert deleted.branch is not None
    assert deleted.branch.id == BRANCH_ID
    assert [operation.id for operation in deleted.operations] == ["op-1"]
    assert exchange.asked == Asked("DELETE", f"{PATH}/{BRANCH_ID}", {}, None)


@pytest.mark.parametrize("wait", [False, True, 5.0])
async def test_delete_answered_with_nothing(wait: bool | float) -> None:
    async with answering(status=204, body=b"") as exchange:
        deleted = await exchange.neon.branches.delete(PROJECT, BRANCH_ID, wait=wait)
    assert deleted == BranchDeleted(branch=None, operations=[])
    assert len(exchange.server.received) == 1


@pytest.mark.parametrize(("hard", "sent"), [(True, "true"), (False, "false")])
async def test_delete_for_good(hard: bool, sent: str) -> None:
    async with answering(status=204, body=b"") as exchange:
        await exchange.neon.branches.delete(PROJECT, BRANCH_ID, hard_delete=hard)
    assert exchange.asked.query == {"hard_delete": sent}


async def test_ids_are_percent_encoded_on_the_wire() -> None:
    async with answering({"message": "no such branch"}, 404) as exchange:
        with pytest.raises(NotFoundError):
            await exchange.neon.branches.get("a b", "%2e%2e?x#y")
    assert exchange.asked.path == "/projects/a%20b/branches/%252e%252e%3Fx%23y"


CALLS = [
    Call(
        lambda neon: neon.branches.count(PROJECT),
        asks=Asked("GET", f"{PATH}/count", {}, None),
        shown={"count": 2},
        gives=2,
    ),
    Call(
        lambda neon: neon.branches.count(PROJECT, search="pre view"),
        asks=Asked("GET", f"{PATH}/count", {"search": "pre view"}, None),
        shown={"count": 0},
        gives=0,
    ),
    Call(
        lambda neon: neon.branches.update(PROJECT, "br-1"),
        asks=Asked("PATCH", f"{PATH}/br-1", {}, {"branch": {}}),
        shown=CHANGED,
        gives=decode(BranchUpdated, CHANGED),
    ),
    Call(
        lambda neon: neon.branches.update(
            PROJECT,
            "br-1",
            name="shop",
            protected=False,
            expires_at=datetime(2026, 2, 1, tzinfo=UTC),
        ),
        asks=Asked(
            "PATCH",
            f"{PATH}/br-1",
            {},
            {
                "branch": {
                    "name": "shop",
                    "protected": False,
                    "expires_at": "2026-02-01T00:00:00Z",
                }
            },
        ),
        shown=CHANGED,
        gives=decode(BranchUpdated, CHANGED),
    ),
    Call(
        lambda neon: neon.branches.update(PROJECT, "br-1", expires_at=None),
        asks=Asked("PATCH", f"{PATH}/br-1", {}, {"branch": {"expires_at": None}}),
        shown=CHANGED,
        gives=decode(BranchUpdated, CHANGED),
    ),
    Call(
        lambda neon: neon.branches.set_as_default(PROJECT, "br-1"),
        asks=Asked("POST", f"{PATH}/br-1/set_as_default", {}, None),
        shown=CHANGED,
        gives=decode(BranchUpdated, CHANGED),
    ),
    Call(
        lambda neon: neon.branches.restore(PROJECT, "br-1", source_branch_id="br-2"),
        asks=Asked("POST", f"{PATH}/br-1/restore", {}, {"source_branch_id": "br-2"}),
        shown=CHANGED,
        gives=decode(BranchUpdated, CHANGED),
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
        asks=Asked(
            "POST",
            f"{PATH}/br-1/restore",
            {},
            {
                "source_branch_id": "br-1",
                "source_lsn": "0/1",
                "source_timestamp": "2026-02-01T00:00:00Z",
                "preserve_under_name": "before",
            },
        ),
        shown=CHANGED,
        gives=decode(BranchUpdated, CHANGED),
    ),
    Call(
        lambda neon: neon.branches.finalize_restore(PROJECT, "br-1"),
        asks=Asked("POST", f"{PATH}/br-1/finalize_restore", {}, None),
        shown=STARTED,
        gives=decode(OperationsResponse, STARTED),
    ),
    Call(
        lambda neon: neon.branches.finalize_restore(PROJECT, "br-1", name="before"),
        asks=Asked("POST", f"{PATH}/br-1/finalize_restore", {}, {"name": "before"}),
        shown=STARTED,
        gives=decode(OperationsResponse, STARTED),
    ),
    Call(
        lambda neon: neon.branches.recover(PROJECT, "br-1"),
        asks=Asked("POST", f"{PATH}/br-1/recover", {}, None),
        shown={"branch": branch_json()},
        gives=decode(BranchRecovered, {"branch": branch_json()}),
    ),
    Call(
        lambda neon: neon.branches.list_endpoints(PROJECT, "br-1"),
        asks=Asked("GET", f"{PATH}/br-1/endpoints", {}, None),
        shown={"endpoints": [ENDPOINT]},
        gives=[decode(Endpoint, ENDPOINT)],
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_what_it_asks_and_gives(call: Call) -> None:
    await check(call)


def page(*ids: str, default: str = "", cursor: str | None = None) -> JsonObject:
    """A page of branches, one of which may be the default one."""
    branches = [{**branch_json(id), "default": id == default} for id in ids]
    return {"branches": branches, "pagination": {"next": cursor}}


async def test_the_default_branch_is_looked_for_among_the_oldest_and_no_further_than_it_is() -> (
    None
):
    async with answering_in_turn(
        page("br-1", cursor="2"), page("br-2", "br-3", default="br-3", cursor="3"), page("br-4")
    ) as exchange:
        found = await exchange.neon.branches.default(PROJECT)
    assert (found.id, found.default) == ("br-3", True)
    order = {"limit": "100", "sort_by": "created_at", "sort_order": "asc"}
    assert [asked.query for asked in exchange.all_asked] == [order, {**order, "cursor": "2"}]


async def test_a_project_without_a_default_branch_is_a_lookup_error() -> None:
    async with answering_in_turn(page("br-1", cursor="2"), page("br-2")) as exchange:
        with pytest.raises(LookupError, match=f"{PROJECT} has no default branch"):
            await exchange.neon.branches.default(PROJECT)


@pytest.mark.parametrize("more", [{}, {"preserve_under_name": "before"}])
async def test_a_reset_asks_for_the_parent_and_restores_from_it(more: Any) -> None:
    shown = {"branch": {**branch_json(), "parent_id": "br-main"}}
    async with answering_in_turn(shown, CHANGED) as exchange:
        reset = await exchange.neon.branches.reset_from_parent(PROJECT, BRANCH_ID, **more)
    assert reset == decode(BranchUpdated, CHANGED)
    assert exchange.all_asked == [
        Asked("GET", f"{PATH}/{BRANCH_ID}", {}, None),
        Asked("POST", f"{PATH}/{BRANCH_ID}/restore", {}, {"source_branch_id": "br-main", **more}),
    ]


async def test_a_root_branch_is_not_reset() -> None:
    async with answering({"branch": branch_json()}) as exchange:
        with pytest.raises(ValueError, match=f"{BRANCH_ID} has no parent"):
            await exchange.neon.branches.reset_from_parent(PROJECT, BRANCH_ID)
    assert exchange.asked.method == "GET"


@pytest.mark.virtual_time
async def test_a_branch_is_reset_made_the_default_one_and_no_longer_expires(
    neon: NeonClient, project_id: str
) -> None:
    created = await neon.branches.create(
        project_id, name="preview", expires_at=datetime(2026, 2, 1, tzinfo=UTC), wait=True
    )
    kept = await neon.branches.update(project_id, created.branch.id, expires_at=None)
    assert (created.branch.expires_at is None, kept.branch.expires_at) == (False, None)
    reset = await neon.branches.reset_from_parent(project_id, created.branch.id, wait=True)
    assert {operation.status for operation in reset.operations} == {"finished"}
    await neon.branches.set_as_default(project_id, created.branch.id, wait=True)
    assert (await neon.branches.default(project_id)).id == created.branch.id
    assert await neon.branches.count(project_id) == 2
