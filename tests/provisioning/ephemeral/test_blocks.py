"""A branch for a while is there within the block, and nowhere after it."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from neonctl_async import (
    EndpointSpec,
    NeonClient,
)
from neonctl_async.local import LocalControlPlane
from tests.provisioning.ephemeral.blocks import enter, names
from tests.resources.wire import responding_with
from tests.support.records import PROJECT, branch_json


async def test_it_is_ready_and_can_be_reached_within_the_block(
    neon: NeonClient, project_id: str
) -> None:
    async with neon.branches.ephemeral(project_id) as created:
        assert {operation.status for operation in created.operations} == {"finished"}
        assert created.connection_uri.reveal().startswith("postgresql://")
        assert created.branch.name in await names(neon, project_id)
    assert created.branch.name not in await names(neon, project_id)


async def test_it_is_made_as_asked() -> None:
    async with responding_with({"branch": branch_json(), "operations": []}) as exchange:
        async with exchange.neon.branches.ephemeral(
            PROJECT,
            name="for-now",
            parent_id="br-1",
            parent_lsn="0/1E88FA8",
            parent_timestamp=datetime(2026, 1, 1, tzinfo=UTC),
            init_source="schema-only",
            endpoints=[EndpointSpec(type="read_only")],
            ttl_seconds=None,
        ):
            assert exchange.sent.body == {
                "branch": {
                    "name": "for-now",
                    "parent_id": "br-1",
                    "parent_lsn": "0/1E88FA8",
                    "parent_timestamp": "2026-01-01T00:00:00Z",
                    "init_source": "schema-only",
                },
                "endpoints": [{"type": "read_only"}],
            }


async def test_the_platform_deletes_it_should_the_process_die(
    neon: NeonClient, project_id: str
) -> None:
    for lifetime, ephemeral in (
        (timedelta(hours=1), neon.branches.ephemeral(project_id)),
        (timedelta(minutes=10), neon.branches.ephemeral(project_id, ttl_seconds=600)),
    ):
        async with ephemeral as created:
            expires_at = created.branch.expires_at
        assert expires_at is not None
        assert abs(expires_at - datetime.now(UTC) - lifetime) < timedelta(seconds=60)
    async with neon.branches.ephemeral(project_id, ttl_seconds=None) as created:
        assert created.branch.expires_at is None


async def test_its_end_is_told_to_the_second() -> None:
    async with responding_with({"branch": branch_json(), "operations": []}) as exchange:
        async with exchange.neon.branches.ephemeral(PROJECT):
            told = re.search(rb'"expires_at":"([^"]+)"', exchange.server.received[0].body)
    assert told
    assert re.fullmatch(rb"[\d-]{10}T[\d:]{8}Z", told[1])


async def test_an_error_in_the_block_comes_out_as_it_was(neon: NeonClient, project_id: str) -> None:
    with pytest.raises(RuntimeError, match=r"^mine$") as caught:
        async with neon.branches.ephemeral(project_id):
            raise RuntimeError("mine")
    assert not hasattr(caught.value, "__notes__")
    assert await names(neon, project_id) == ["main"]


async def test_a_block_may_delete_it_itself(neon: NeonClient, project_id: str) -> None:
    async with neon.branches.ephemeral(project_id) as created:
        await neon.branches.delete(project_id, created.branch.id)
    assert await names(neon, project_id) == ["main"]


async def test_it_may_be_entered_in_one_task_and_left_in_another(
    neon: NeonClient, project_id: str
) -> None:
    ephemeral = neon.branches.ephemeral(project_id)
    created = await asyncio.create_task(ephemeral.__aenter__())
    assert created.branch.name in await names(neon, project_id)
    await asyncio.create_task(ephemeral.__aexit__(None, None, None))
    assert await names(neon, project_id) == ["main"]


async def test_twenty_at_once_are_all_gone_in_the_end(neon: NeonClient, project_id: str) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(enter(neon, project_id))
    assert await names(neon, project_id) == ["main"]


@pytest.mark.parametrize(
    ("odd", "kind"),
    [
        ({"timeout": -1}, ValueError),
        ({"ttl_seconds": 0}, ValueError),
        ({"ttl_seconds": 10**12}, ValueError),
        ({"ttl_seconds": "60"}, TypeError),
        ({"ttl_seconds": True}, TypeError),
    ],
)
async def test_what_cannot_be_is_refused_before_anything_is_sent(
    control_plane: LocalControlPlane,
    neon: NeonClient,
    project_id: str,
    odd: dict[str, Any],
    kind: type[Exception],
) -> None:
    before = control_plane.requests_served
    with pytest.raises(kind, match=f"^{next(iter(odd))} is "):
        neon.branches.ephemeral(project_id, **odd)
    assert control_plane.requests_served == before
