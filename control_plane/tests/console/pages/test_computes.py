"""The actions on computes, and the forms that create, change and delete a compute."""

from typing import Any

import pytest

from control_plane.tests.client import Client
from control_plane.tests.console.visitor import Page, Visitor
from neonctl_local import ManualClock


@pytest.fixture
async def endpoint(api: Client, project_id: str, branch_path: str) -> str:
    """Return the path of the compute of the first branch, in the API. It is running."""
    (endpoint,) = (await api.get(f"{branch_path}/endpoints"))["endpoints"]
    return f"/projects/{project_id}/endpoints/{endpoint['id']}"


@pytest.fixture
def compute(endpoint: str) -> str:
    """Return the path of the compute of the first branch, in the console."""
    return endpoint.replace("endpoints", "computes")


async def endpoint_at(api: Client, path: str) -> Any:  # Any: as Reply.json
    """Return the compute with a path."""
    return (await api.get(path))["endpoint"]


async def act(visitor: Visitor, branch_path: str, compute: str, action: str) -> Page:
    """Press a button on the page of a branch."""
    return await visitor.post(await visitor.get(branch_path), f"{compute}/{action}")


async def send(visitor: Visitor, path: str, **values: str | None) -> Page:
    """Open a form, fill it in, and post it."""
    return await visitor.post(await visitor.get(path), path, **values)


async def test_compute_is_suspended_and_started(
    visitor: Visitor, clock: ManualClock, branch_path: str, compute: str
) -> None:
    page = await act(visitor, branch_path, compute, "suspend")
    assert page.path == branch_path
    assert "The compute is being suspended. Started: Suspend compute." in page.text
    assert "Suspending" in page.text
    clock.advance(9)
    page = await act(visitor, branch_path, compute, "start")
    assert "The compute is starting. Started: Start compute." in page.text
    assert "Starting" in page.text
    clock.advance(9)
    assert "Active" in (await visitor.get(branch_path)).text


async def test_compute_is_restarted(visitor: Visitor, branch_path: str, compute: str) -> None:
    page = await act(visitor, branch_path, compute, "restart")
    assert "The compute is restarting. Started: Suspend compute, Start compute." in page.text
    assert "Restarting" in page.text


async def test_compute_that_is_active_already_starts_no_operation(
    api: Client, visitor: Visitor, clock: ManualClock, branch_path: str, compute: str, endpoint: str
) -> None:
    await act(visitor, branch_path, compute, "suspend")
    clock.advance(9)
    page = await visitor.get(branch_path)
    await api.request("POST", f"{endpoint}/start")
    clock.advance(9)
    page = await visitor.post(page, f"{compute}/start")
    assert "The compute was active already." in page.text
    assert "Started" not in page.text


@pytest.mark.control_plane(lock="branch")
async def test_request_to_a_locked_branch_is_refused_with_the_next_step(
    visitor: Visitor, branch_path: str, compute: str
) -> None:
    await act(visitor, branch_path, compute, "suspend")
    page = await act(visitor, branch_path, compute, "start")
    assert page.status == 423
    assert "Wait until the running operations have finished" in page.text
    assert f'data-refresh="/console{branch_path}"' in page.html
    assert (await visitor.get(f"{compute}/start")).path == branch_path


async def test_compute_is_created(api: Client, visitor: Visitor, branch_path: str) -> None:
    path = f"{branch_path}/computes/new"
    page = await send(visitor, path, min="0.5", max="2", suspend_timeout="-1")
    assert "created. Started: Start compute." in page.text
    assert "0.5 to 2 CU" in page.text
    (_, created) = (await api.get(f"{branch_path}/endpoints"))["endpoints"]
    assert created["type"] == "read_only"
    assert created["suspend_timeout_seconds"] == -1


async def test_first_compute_of_a_branch_is_writable(
    api: Client, visitor: Visitor, clock: ManualClock, project_id: str
) -> None:
    clock.advance(9)
    branch = (await api.branch(project_id, name="child"))["branch"]
    clock.advance(9)
    path = f"/projects/{project_id}/branches/{branch['id']}"
    form = await visitor.get(f"{path}/computes/new")
    await send(visitor, f"{path}/computes/new")
    (created,) = (await api.get(f"{path}/endpoints"))["endpoints"]
    assert created["type"] == "read_write"
    page = await visitor.post(form, f"{path}/computes/new")
    assert page.status == 409
    assert "already has a read_write endpoint" in page.text


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"min": "small"}, "The minimum size is 'small': type a number such as 0.25"),
        ({"max": "inf"}, "The maximum size is 'inf'"),
        ({"suspend_timeout": "1.5"}, "is '1.5': type a whole number such as 300"),
        ({"min": "4", "max": "2"}, "minimum size: 4 is more than the maximum size, 2"),
        ({"suspend_timeout": "604801"}, " suspend timeout (expected "),
    ],
    ids=["text", "infinity", "fraction", "order", "long"],
)
async def test_refused_settings_stay_in_their_fields(
    visitor: Visitor, branch_path: str, compute: str, values: dict[str, str], words: str
) -> None:
    for path in (f"{branch_path}/computes/new", f"{compute}/edit"):
        page = await send(visitor, path, **values)
        assert page.status == 400
        assert words in page.text
        assert values.items() <= page.form(path).fields.items()


async def test_compute_is_edited(
    api: Client, visitor: Visitor, compute: str, endpoint: str
) -> None:
    page = await send(visitor, f"{compute}/edit", max="1", suspend_timeout="90", disabled="yes")
    assert "changed. Started: Apply config, Suspend compute." in page.text
    assert "1 min 30 s" in page.text
    changed = await endpoint_at(api, endpoint)
    assert changed["autoscaling_limit_min_cu"] == 0.25
    assert changed["autoscaling_limit_max_cu"] == 1
    assert changed["disabled"]
    await send(visitor, f"{compute}/edit", disabled=None)
    assert not (await endpoint_at(api, endpoint))["disabled"]


async def test_start_of_a_disabled_compute_is_disabled_with_a_reason(
    api: Client, visitor: Visitor, clock: ManualClock, branch_path: str, endpoint: str
) -> None:
    await api.request("POST", f"{endpoint}/suspend")
    await api.request("PATCH", endpoint, {"endpoint": {"disabled": True}})
    clock.advance(9)
    page = await visitor.get(branch_path)
    assert "Not available: the compute is disabled: edit it to enable it" in page.text


async def test_compute_is_deleted(visitor: Visitor, branch_path: str, compute: str) -> None:
    form = await visitor.get(f"{compute}/delete")
    assert "Open connections of this compute end" in form.text
    page = await visitor.post(form, f"{compute}/delete")
    assert page.path == branch_path
    assert "deleted. Started: Suspend compute." in page.text
    assert "No compute" in page.text
    assert (await visitor.post(form, f"{compute}/delete")).status == 404


async def test_address_of_a_compute_leads_to_its_branch(
    visitor: Visitor, branch_path: str, compute: str
) -> None:
    assert (await visitor.get(compute)).path == branch_path
