"""``databases.ensure`` creates a database, or adopts it."""

import asyncio

import pytest

from neonctl_async import (
    MismatchError,
    NeonClient,
    NotConnectableError,
    NotFoundError,
    OperationFailedError,
)
from neonctl_async.types import EnsuredDatabase
from neonctl_local import Fault, LocalControlPlane
from tests.provisioning.helpers import COMPUTE

CREATE = "POST /projects/{project_id}/branches/{branch_id}/databases"
OWNER = "neondb_owner"


@pytest.fixture
async def branch_id(neon: NeonClient, project_id: str) -> str:
    created = await neon.branches.ensure(project_id, name="preview", endpoints=[COMPUTE], wait=True)
    return created.branch.id


async def ensure(
    neon: NeonClient, project_id: str, branch_id: str, *, wait: bool = True
) -> EnsuredDatabase:
    return await neon.databases.ensure(
        project_id, branch_id, name="shop", owner_name=OWNER, wait=wait
    )


async def test_first_call_creates_and_the_second_one_adopts(
    neon: NeonClient, project_id: str, branch_id: str
) -> None:
    first = await ensure(neon, project_id, branch_id)
    before = neon.requests_sent
    second = await ensure(neon, project_id, branch_id)
    assert neon.requests_sent - before == 2
    assert (first.created, second.created) == (True, False)
    assert first.database == second.database
    assert [one.status for one in first.operations] == ["finished"]
    assert second.operations == []


async def test_wait_covers_the_operations_of_another_process(
    neon: NeonClient, project_id: str, branch_id: str
) -> None:
    created = await ensure(neon, project_id, branch_id, wait=False)
    adopted = await ensure(neon, project_id, branch_id)
    assert not adopted.created
    assert {one.id for one in adopted.operations} <= {one.id for one in created.operations}
    [operation] = await neon.operations.wait(created)
    assert operation.status == "finished"


async def test_connections_of_an_adopted_database_are_those_of_the_read_write_compute(
    neon: NeonClient, project_id: str, branch_id: str
) -> None:
    """Without Postgres, the host names of the local control plane do not exist."""
    await neon.endpoints.create(project_id, branch_id=branch_id, type="read_only", wait=True)
    await ensure(neon, project_id, branch_id)
    [writer] = [
        compute
        for compute in await neon.branches.list_endpoints(project_id, branch_id)
        if compute.type == "read_write"
    ]
    with pytest.raises(NotConnectableError, match=writer.host):
        await neon.databases.ensure(
            project_id, branch_id, name="shop", owner_name=OWNER, wait="connect"
        )


async def test_failed_operation_of_another_process_is_reported(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str, branch_id: str
) -> None:
    await control_plane.fail_next("apply_config")
    await ensure(neon, project_id, branch_id, wait=False)
    with pytest.raises(OperationFailedError) as caught:
        await ensure(neon, project_id, branch_id)
    assert isinstance(caught.value.result, EnsuredDatabase)


async def test_other_owner_is_a_difference(
    neon: NeonClient, project_id: str, branch_id: str
) -> None:
    await ensure(neon, project_id, branch_id)
    with pytest.raises(MismatchError) as caught:
        await neon.databases.ensure(project_id, branch_id, name="shop", owner_name="app")
    assert caught.value.differences == ("its owner is 'neondb_owner' instead of 'app'",)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_calls_at_the_same_time_create_one_database(
    control_plane: LocalControlPlane,
    neon: NeonClient,
    project_id: str,
    branch_id: str,
    when: str,
) -> None:
    control_plane.inject(
        Fault(route=CREATE, times=3, drop=True, when="after" if when == "after" else "before")
    )
    ensured = await asyncio.gather(*(ensure(neon, project_id, branch_id) for _ in range(10)))
    listed = await neon.databases.list(project_id, branch_id)
    [shop] = [database for database in listed if database.name == "shop"]
    assert {one.database.id for one in ensured} == {shop.id}


async def test_missing_branch_is_an_error(neon: NeonClient, project_id: str) -> None:
    with pytest.raises(NotFoundError, match="branch not found"):
        await ensure(neon, project_id, "br-missing-1")


async def test_empty_names_are_refused(neon: NeonClient) -> None:
    with pytest.raises(ValueError, match="name is empty"):
        await neon.databases.ensure("p-1", "br-1", name="", owner_name=OWNER)
    with pytest.raises(ValueError, match="owner_name is empty"):
        await neon.databases.ensure("p-1", "br-1", name="shop", owner_name="")
