"""``endpoints.ensure`` creates the read-write compute of a branch, or adopts it."""

import asyncio
from typing import Any

import pytest

from neonctl_async import EndpointSettings, MismatchError, NeonClient, NotFoundError
from neonctl_local import Fault, LocalControlPlane
from tests.models.records import ENDPOINT, JsonObject
from tests.resources.wire import responding_with
from tests.support.records import PROJECT

CREATE = "POST /projects/{project_id}/endpoints"


@pytest.fixture
async def branch_id(neon: NeonClient, project_id: str) -> str:
    return (await neon.branches.create(project_id, name="preview", wait=True)).branch.id


async def test_first_call_creates_and_the_second_one_adopts(
    neon: NeonClient, project_id: str, branch_id: str
) -> None:
    settings: dict[str, Any] = {
        "autoscaling_limit_max_cu": 2,
        "settings": EndpointSettings(pg_settings={"work_mem": "8MB"}),
        "suspend_timeout_seconds": 60,
    }
    first, second = [
        await neon.endpoints.ensure(project_id, branch_id=branch_id, wait=True, **settings)
        for _ in range(2)
    ]
    assert (first.created, second.created) == (True, False)
    assert first.endpoint.id == second.endpoint.id
    assert second.endpoint.current_state == "active"
    before = neon.requests_sent
    await neon.endpoints.ensure(project_id, branch_id=branch_id, wait=True)
    assert neon.requests_sent - before == 1


async def test_differing_compute_is_an_error(
    neon: NeonClient, project_id: str, branch_id: str
) -> None:
    created = await neon.endpoints.ensure(project_id, branch_id=branch_id, wait=True)
    with pytest.raises(MismatchError) as caught:
        await neon.endpoints.ensure(
            project_id, branch_id=branch_id, autoscaling_limit_min_cu=1, disabled=True
        )
    assert caught.value.differences == (
        f"autoscaling_limit_min_cu is 0.25 instead of 1 (compute {created.endpoint.id})",
        f"disabled is False instead of True (compute {created.endpoint.id})",
    )


async def test_calls_at_the_same_time_create_one_compute(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str, branch_id: str
) -> None:
    control_plane.inject(Fault(route=CREATE, times=3, drop=True, when="after"))
    ensured = await asyncio.gather(
        *(neon.endpoints.ensure(project_id, branch_id=branch_id, wait=True) for _ in range(10))
    )
    [compute] = await neon.branches.list_endpoints(project_id, branch_id)
    assert {one.endpoint.id for one in ensured} == {compute.id}
    assert compute.current_state == "active"


async def test_missing_branch_is_an_error(neon: NeonClient, project_id: str) -> None:
    with pytest.raises(NotFoundError, match="branch not found"):
        await neon.endpoints.ensure(project_id, branch_id="br-missing-1")


async def test_read_only_compute_is_refused(neon: NeonClient) -> None:
    before = neon.requests_sent
    with pytest.raises(ValueError, match=r"type is 'read_only': expected 'read_write'"):
        await neon.endpoints.ensure("p-1", branch_id="br-1", type="read_only")
    with pytest.raises(ValueError, match="branch_id is ''"):
        await neon.endpoints.ensure("p-1", branch_id="")
    assert neon.requests_sent == before


async def test_all_settings_are_sent() -> None:
    response: JsonObject = {"endpoints": [], "endpoint": ENDPOINT, "operations": []}
    async with responding_with(response) as exchange:
        await exchange.neon.endpoints.ensure(
            PROJECT,
            branch_id="br-1",
            name="app",
            settings=EndpointSettings(pg_settings={"work_mem": "8MB"}),
            autoscaling_limit_min_cu=1,
            autoscaling_limit_max_cu=2,
            provisioner="k8s-pod",
            disabled=True,
            passwordless_access=False,
            suspend_timeout_seconds=60,
        )
    assert exchange.all_sent[1].body == {
        "endpoint": {
            "branch_id": "br-1",
            "type": "read_write",
            "name": "app",
            "settings": {"pg_settings": {"work_mem": "8MB"}},
            "autoscaling_limit_min_cu": 1,
            "autoscaling_limit_max_cu": 2,
            "provisioner": "k8s-pod",
            "disabled": True,
            "passwordless_access": False,
            "suspend_timeout_seconds": 60,
        }
    }
