"""The branch of ``branches.ephemeral`` exists during the block, and not after it."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from neonctl_async import EndpointSpec, NeonClient
from neonctl_local import LocalControlPlane
from tests.provisioning.helpers import branch_names, enter_and_exit
from tests.resources.wire import responding_with
from tests.support.records import PROJECT, branch_json


async def test_branch_is_ready_during_the_block_and_deleted_after_it(
    neon: NeonClient, project_id: str
) -> None:
    async with neon.branches.ephemeral(project_id) as created:
        assert {operation.status for operation in created.operations} == {"finished"}
        assert created.connection_uri.reveal().startswith("postgresql://")
        assert created.branch.name in await branch_names(neon, project_id)
    assert created.branch.name not in await branch_names(neon, project_id)


async def test_all_arguments_are_sent() -> None:
    async with responding_with({"branch": branch_json(), "operations": []}) as exchange:
        async with exchange.neon.branches.ephemeral(
            PROJECT,
            name="temporary",
            parent_id="br-1",
            parent_lsn="0/1E88FA8",
            parent_timestamp=datetime(2026, 1, 1, tzinfo=UTC),
            init_source="schema-only",
            endpoints=[EndpointSpec(type="read_only")],
            ttl_seconds=None,
        ):
            assert exchange.sent.body == {
                "branch": {
                    "name": "temporary",
                    "parent_id": "br-1",
                    "parent_lsn": "0/1E88FA8",
                    "parent_timestamp": "2026-01-01T00:00:00Z",
                    "init_source": "schema-only",
                },
                "endpoints": [{"type": "read_only"}],
            }


async def test_branch_expires_after_ttl_seconds(neon: NeonClient, project_id: str) -> None:
    for ttl, ephemeral in (
        (timedelta(hours=1), neon.branches.ephemeral(project_id)),
        (timedelta(minutes=10), neon.branches.ephemeral(project_id, ttl_seconds=600)),
    ):
        async with ephemeral as created:
            expires_at = created.branch.expires_at
        assert expires_at is not None
        assert abs(expires_at - datetime.now(UTC) - ttl) < timedelta(seconds=60)
    async with neon.branches.ephemeral(project_id, ttl_seconds=None) as created:
        assert created.branch.expires_at is None


async def test_expires_at_is_sent_in_whole_seconds() -> None:
    async with responding_with({"branch": branch_json(), "operations": []}) as exchange:
        async with exchange.neon.branches.ephemeral(PROJECT):
            sent = re.search(rb'"expires_at":"([^"]+)"', exchange.server.received[0].body)
    assert sent
    assert re.fullmatch(rb"[\d-]{10}T[\d:]{8}Z", sent[1])


async def test_error_of_the_block_is_raised_without_a_note(
    neon: NeonClient, project_id: str
) -> None:
    with pytest.raises(RuntimeError, match=r"^error of the block$") as caught:
        async with neon.branches.ephemeral(project_id):
            raise RuntimeError("error of the block")
    assert not hasattr(caught.value, "__notes__")
    assert await branch_names(neon, project_id) == ["main"]


async def test_block_can_delete_the_branch(neon: NeonClient, project_id: str) -> None:
    async with neon.branches.ephemeral(project_id) as created:
        await neon.branches.delete(project_id, created.branch.id)
    assert await branch_names(neon, project_id) == ["main"]


async def test_block_can_be_entered_and_left_in_different_tasks(
    neon: NeonClient, project_id: str
) -> None:
    ephemeral = neon.branches.ephemeral(project_id)
    created = await asyncio.create_task(ephemeral.__aenter__())
    assert created.branch.name in await branch_names(neon, project_id)
    await asyncio.create_task(ephemeral.__aexit__(None, None, None))
    assert await branch_names(neon, project_id) == ["main"]


async def test_twenty_concurrent_branches_are_all_deleted(
    neon: NeonClient, project_id: str
) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(enter_and_exit(neon, project_id))
    assert await branch_names(neon, project_id) == ["main"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"timeout": -1}, ValueError),
        ({"ttl_seconds": 0}, ValueError),
        ({"ttl_seconds": 10**12}, ValueError),
        ({"ttl_seconds": "60"}, TypeError),
        ({"ttl_seconds": True}, TypeError),
    ],
)
async def test_invalid_argument_is_rejected_without_a_request(
    control_plane: LocalControlPlane,
    neon: NeonClient,
    project_id: str,
    arguments: dict[str, Any],
    error: type[Exception],
) -> None:
    before = control_plane.requests_served
    with pytest.raises(error, match=f"^{next(iter(arguments))} is "):
        neon.branches.ephemeral(project_id, **arguments)
    assert control_plane.requests_served == before
