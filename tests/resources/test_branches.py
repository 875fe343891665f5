from datetime import UTC, datetime, timedelta, timezone

import pytest

from neonctl_async import (
    BranchDeleted,
    ConflictError,
    EndpointSettings,
    EndpointSpec,
    EndpointType,
    NotFoundError,
)
from tests.resources.wire import Asked, answering
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
    assert exchange.asked == Asked("GET", f"{PATH}/{BRANCH_ID}", {}, None)


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
