"""The fixture's view of the local control plane offers the methods of a tenant, awaited."""

import inspect

import pytest

from neonctl_async import NeonClient, OperationFailedError, ServerError
from neonctl_local import Fault, ServedRequest, Tenant
from pytest_neonctl_async import ActiveFault, ControlPlane
from pytest_neonctl_async.backend import Backend
from pytest_neonctl_async.local import LocalBackend
from pytest_neonctl_async.tenant_calls import ALLOWED

METHODS = sorted(name for name in vars(ControlPlane) if not name.startswith("_"))


@pytest.mark.parametrize("name", METHODS)
def test_method_has_the_signature_of_the_tenants_method(name: str) -> None:
    assert name in ALLOWED
    member = getattr(Tenant, name)
    function = member.fget if isinstance(member, property) else member
    assert callable(function)
    expected = inspect.signature(function).parameters
    assert inspect.signature(getattr(ControlPlane, name)).parameters == expected


async def test_active_faults_are_counted_and_cleared(
    backend: Backend, neon_control_plane: ControlPlane
) -> None:
    fault = Fault(route="GET /regions", status=501, times=1)
    await neon_control_plane.inject(fault)
    async with backend.new_client() as neon:
        with pytest.raises(ServerError, match="a planned fault"):
            await neon.regions.list()
        assert await neon.regions.list()
    assert await neon_control_plane.faults() == [ActiveFault(fault, fired=1)]
    assert await neon_control_plane.requests() == [
        ServedRequest("GET", "/regions", 501),
        ServedRequest("GET", "/regions", 200),
    ]
    await neon_control_plane.clear_faults()
    assert await neon_control_plane.faults() == []


async def test_planned_failure_of_an_operation_fails_the_wait(
    backend: Backend, neon_control_plane: ControlPlane
) -> None:
    await neon_control_plane.fail_next("create_timeline", error="out of storage")
    async with backend.new_client() as neon:
        with pytest.raises(OperationFailedError, match="out of storage"):
            await neon.projects.create(name="test", org_id=neon_control_plane.org_id, wait=True)


async def test_users_keys_and_organizations_can_be_created(
    backend: Backend, neon_control_plane: ControlPlane
) -> None:
    user_id = await neon_control_plane.create_user("Somebody", "somebody@example.com")
    org_id = await neon_control_plane.create_organization("Theirs", admin_id=user_id)
    key = await neon_control_plane.create_api_key("theirs", user_id=user_id)
    await neon_control_plane.add_member(org_id, neon_control_plane.user_id, "admin")
    async with NeonClient(key, base_url=neon_control_plane.base_url) as neon:
        assert (await neon.users.me()).id == user_id
        assert await neon.organizations.list_members(org_id).collect()
        await neon_control_plane.remove_member(org_id, neon_control_plane.user_id)
        [member] = await neon.organizations.list_members(org_id).collect()
    assert member.member.user_id == user_id
    await neon_control_plane.reset()
    async with backend.new_client() as neon:
        assert [org.id for org in await neon.users.organizations()] == [neon_control_plane.org_id]


async def test_invalid_arguments_raise_value_error(
    backend: Backend, neon_control_plane: ControlPlane
) -> None:
    with pytest.raises(ValueError, match="no action 'destroy'"):
        await neon_control_plane.fail_next("destroy")
    with pytest.raises(ValueError, match="GET /nothing"):
        await neon_control_plane.inject(Fault(route="GET /nothing", status=500))
    assert isinstance(backend, LocalBackend)
    with pytest.raises(ValueError, match="no method 'stop'"):
        await backend.loop.run(backend.tenant.call("stop", str))


def test_repr_shows_the_url_and_no_key(neon_control_plane: ControlPlane) -> None:
    assert repr(neon_control_plane) == f"<ControlPlane {neon_control_plane.base_url}>"
