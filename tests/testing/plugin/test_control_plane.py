"""The fixture's view of the local control plane offers the methods of a tenant, awaited."""

import inspect

import pytest

from neonctl_async import NeonClient, OperationFailedError, ServerError
from neonctl_async.testing import ActiveFault, ControlPlane
from neonctl_async.testing.plugin.backends import Backend, LocalBackend
from neonctl_async.testing.plugin.tenant_calls import ALLOWED
from neonctl_local import Fault, ServedRequest, Tenant

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
    backend: Backend, control_plane: ControlPlane
) -> None:
    fault = Fault(route="GET /regions", status=501, times=1)
    await control_plane.inject(fault)
    async with backend.new_client() as neon:
        with pytest.raises(ServerError, match="a planned fault"):
            await neon.regions.list()
        assert await neon.regions.list()
    assert await control_plane.faults() == [ActiveFault(fault, fired=1)]
    assert await control_plane.requests() == [
        ServedRequest("GET", "/regions", 501),
        ServedRequest("GET", "/regions", 200),
    ]
    await control_plane.clear_faults()
    assert await control_plane.faults() == []


async def test_planned_failure_of_an_operation_fails_the_wait(
    backend: Backend, control_plane: ControlPlane
) -> None:
    await control_plane.fail_next("create_timeline", error="out of storage")
    async with backend.new_client() as neon:
        with pytest.raises(OperationFailedError, match="out of storage"):
            await neon.projects.create(name="test", org_id=control_plane.org_id, wait=True)


async def test_users_keys_and_organizations_can_be_created(
    backend: Backend, control_plane: ControlPlane
) -> None:
    user_id = await control_plane.create_user("Somebody", "somebody@example.com")
    org_id = await control_plane.create_organization("Theirs", admin_id=user_id)
    key = await control_plane.create_api_key("theirs", user_id=user_id)
    await control_plane.add_member(org_id, control_plane.user_id, "admin")
    async with NeonClient(key, base_url=control_plane.base_url) as neon:
        assert (await neon.users.me()).id == user_id
        assert await neon.organizations.list_members(org_id).collect()
        await control_plane.remove_member(org_id, control_plane.user_id)
        [member] = await neon.organizations.list_members(org_id).collect()
    assert member.member.user_id == user_id
    await control_plane.reset()
    async with backend.new_client() as neon:
        assert [org.id for org in await neon.users.organizations()] == [control_plane.org_id]


async def test_invalid_arguments_raise_value_error(
    backend: Backend, control_plane: ControlPlane
) -> None:
    with pytest.raises(ValueError, match="no action 'destroy'"):
        await control_plane.fail_next("destroy")
    with pytest.raises(ValueError, match="GET /nothing"):
        await control_plane.inject(Fault(route="GET /nothing", status=500))
    assert isinstance(backend, LocalBackend)
    with pytest.raises(ValueError, match="no method 'stop'"):
        await backend.loop.run(backend.tenant.call("stop", str))


def test_repr_shows_the_url_and_no_key(control_plane: ControlPlane) -> None:
    assert repr(control_plane) == f"<ControlPlane {control_plane.base_url}>"
