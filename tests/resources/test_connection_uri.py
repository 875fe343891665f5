"""``branches.connection_uri`` finds the database and its owner."""

import pytest

from neonctl_async import ConnectionUri, LookupFailedError, NeonClient
from neonctl_async.types import ProjectCreated
from neonctl_local import LocalControlPlane


@pytest.fixture
async def created(neon: NeonClient) -> ProjectCreated:
    return await neon.projects.create(wait=True)


async def add_database(neon: NeonClient, created: ProjectCreated, name: str, owner: str) -> None:
    ids = created.project.id, created.branch.id
    await neon.roles.create(*ids, name=owner, wait=True)
    await neon.databases.create(*ids, name=name, owner_name=owner, wait=True)


async def test_only_database_and_its_owner_are_found_in_two_requests(
    control_plane: LocalControlPlane, neon: NeonClient, created: ProjectCreated
) -> None:
    before = control_plane.requests_served
    uri = await neon.branches.connection_uri(created.project.id, created.branch.id)
    assert type(uri) is ConnectionUri
    assert uri == created.connection_uri
    assert control_plane.requests_served == before + 2


async def test_owner_of_the_named_database_is_found(
    control_plane: LocalControlPlane, neon: NeonClient, created: ProjectCreated
) -> None:
    await add_database(neon, created, "a/b ü", "o:w@n")
    before = control_plane.requests_served
    uri = await neon.branches.connection_uri(
        created.project.id, created.branch.id, database_name="a/b ü"
    )
    assert (uri.database, uri.role) == ("a/b ü", "o:w@n")
    assert control_plane.requests_served == before + 2


async def test_named_database_and_role_need_one_request(
    control_plane: LocalControlPlane, neon: NeonClient, created: ProjectCreated
) -> None:
    await add_database(neon, created, "reports", "clerk")
    ids = created.project.id, created.branch.id
    before = control_plane.requests_served
    uri = await neon.branches.connection_uri(*ids, database_name="neondb", role_name="clerk")
    assert (uri.database, uri.role) == ("neondb", "clerk")
    assert control_plane.requests_served == before + 1


async def test_role_of_the_only_database_can_be_chosen(
    neon: NeonClient, created: ProjectCreated
) -> None:
    ids = created.project.id, created.branch.id
    await neon.roles.create(*ids, name="clerk", wait=True)
    assert (await neon.branches.connection_uri(*ids, role_name="clerk")).role == "clerk"


async def test_pooler_and_compute_can_be_chosen(neon: NeonClient, created: ProjectCreated) -> None:
    ids = created.project.id, created.branch.id
    reader = await neon.endpoints.create(
        created.project.id, branch_id=created.branch.id, type="read_only", wait=True
    )
    uri = await neon.branches.connection_uri(*ids, endpoint_id=reader.endpoint.id, pooled=True)
    assert uri.pooled
    assert uri.host.startswith(f"{reader.endpoint.id}-pooler.")


async def test_error_for_more_than_one_database_lists_them(
    neon: NeonClient, created: ProjectCreated
) -> None:
    await add_database(neon, created, "analytics", "clerk")
    with pytest.raises(ValueError, match=r"has 2 databases, analytics, neondb: choose one$"):
        await neon.branches.connection_uri(created.project.id, created.branch.id)


async def test_branch_without_a_database_is_an_error(
    neon: NeonClient, created: ProjectCreated
) -> None:
    ids = created.project.id, created.branch.id
    await neon.databases.delete(*ids, "neondb", wait=True)
    with pytest.raises(
        LookupFailedError, match=f"^branch {created.branch.id} has no database: create"
    ):
        await neon.branches.connection_uri(*ids)


async def test_error_for_a_missing_database_lists_the_others(
    neon: NeonClient, created: ProjectCreated
) -> None:
    with pytest.raises(LookupFailedError, match=r"has no database 'missing': it has neondb$"):
        await neon.branches.connection_uri(
            created.project.id, created.branch.id, database_name="missing"
        )
