"""``roles.ensure`` creates a role, or adopts it."""

import asyncio

import pytest
from msgspec import UNSET

from neonctl_async import MismatchError, NeonClient
from neonctl_local import Fault, LocalControlPlane
from tests.provisioning.helpers import COMPUTE
from tests.resources.wire import responding_with
from tests.support.records import EPOCH, PROJECT

CREATE = "POST /projects/{project_id}/branches/{branch_id}/roles"


@pytest.fixture
async def branch_id(neon: NeonClient, project_id: str) -> str:
    created = await neon.branches.ensure(project_id, name="preview", endpoints=[COMPUTE], wait=True)
    return created.branch.id


async def test_only_a_creation_returns_the_password(
    neon: NeonClient, project_id: str, branch_id: str
) -> None:
    first, second = [
        await neon.roles.ensure(project_id, branch_id, name="app", wait=True) for _ in range(2)
    ]
    assert (first.created, second.created) == (True, False)
    assert second.role.password is None
    assert first.role.password is not None
    revealed = await neon.roles.reveal_password(project_id, branch_id, "app")
    assert revealed.reveal() == first.role.password.reveal()


@pytest.mark.parametrize("name", ["team/app", "a b/ä%", "//"])
async def test_role_and_database_with_a_slash_can_be_used_like_others(
    neon: NeonClient, project_id: str, branch_id: str, name: str
) -> None:
    at = project_id, branch_id
    await neon.roles.ensure(*at, name=name, wait=True)
    await neon.databases.ensure(*at, name=name, owner_name=name, wait=True)
    assert (await neon.roles.get(*at, name)).name == name
    reset = await neon.roles.reset_password(*at, name, wait=True)
    assert await neon.roles.reveal_password(*at, name) == reset.role.password
    renamed = await neon.databases.update(*at, name, name=f"{name}/2", wait=True)
    assert (await neon.databases.get(*at, f"{name}/2")).name == renamed.database.name
    await neon.databases.delete(*at, f"{name}/2", wait=True)
    await neon.roles.delete(*at, name, wait=True)
    assert name not in {role.name for role in await neon.roles.list(*at)}


@pytest.mark.parametrize("no_login", [True, False])
async def test_no_login_is_verified(
    neon: NeonClient, project_id: str, branch_id: str, no_login: bool
) -> None:
    for wanted in (no_login, no_login, UNSET):
        await neon.roles.ensure(project_id, branch_id, name="app", no_login=wanted, wait=True)
    with pytest.raises(MismatchError) as caught:
        await neon.roles.ensure(project_id, branch_id, name="app", no_login=not no_login)
    assert caught.value.differences == (f"no_login is {no_login} instead of {not no_login}",)


async def test_role_without_an_authentication_method_does_not_differ() -> None:
    times = {"created_at": EPOCH.isoformat(), "updated_at": EPOCH.isoformat()}
    role = {"branch_id": "br-1", "name": "app", **times}
    async with responding_with({"role": role}) as exchange:
        ensured = await exchange.neon.roles.ensure(PROJECT, "br-1", name="app", no_login=True)
    assert not ensured.created
    assert len(exchange.all_sent) == 1  # an old role needs no operation


async def test_calls_at_the_same_time_create_one_role(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str, branch_id: str
) -> None:
    control_plane.inject(Fault(route=CREATE, times=2, drop=True, when="after"))
    ensured = await asyncio.gather(
        *(neon.roles.ensure(project_id, branch_id, name="app", wait=True) for _ in range(10))
    )
    assert sum(one.created for one in ensured) <= 1
    names = [role.name for role in await neon.roles.list(project_id, branch_id)]
    assert names.count("app") == 1


async def test_empty_name_is_refused(neon: NeonClient) -> None:
    with pytest.raises(ValueError, match="name is empty"):
        await neon.roles.ensure("p-1", "br-1", name="")
