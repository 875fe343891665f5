"""The requests that read states, on the local control plane."""

from datetime import datetime
from typing import TypeVar

import pytest

from neonctl_async import InvalidResponseError, NeonClient, NotFoundError
from neonctl_async.clock import utc_now
from neonctl_async.transport.protocol import Request
from neonctl_async.waiting.source import OperationSource
from neonctl_async.waiting.states.sources import (
    BranchSource,
    ComputeSource,
    ProjectSource,
    ReadyProjectSource,
    newest_operations,
)
from neonctl_local import Durations
from tests.support.fake_neon import FakeNeon
from tests.support.records import PROJECT, branch_json
from tests.support.server import http_response

pytestmark = [
    pytest.mark.virtual_time,
    pytest.mark.control_plane(durations=Durations(default=3.0)),
]

T = TypeVar("T")


class Requests(OperationSource):
    """Sends requests with a client instead of as polls, and records them."""

    def __init__(self, neon: NeonClient) -> None:
        self._neon = neon
        self.sent: list[tuple[str, dict[str, str]]] = []

    async def poll(self, request: Request[T]) -> T:
        query = dict(request.query)
        self.sent.append((request.path.rpartition("/")[2], query))
        return await self._neon.request(
            request.method, request.path, query=query, type=request.response_type
        )

    def server_now(self) -> datetime:
        return utc_now()


@pytest.fixture
def requests(neon: NeonClient) -> Requests:
    return Requests(neon)


async def test_branch_has_its_record_with_its_annotation(
    neon: NeonClient, requests: Requests
) -> None:
    project_id = (await neon.projects.create(name="shop")).project.id
    created = await neon.branches.create(project_id, annotation_value={"owner": "ci"})
    source = BranchSource(project_id, created.branch.id)
    observed = await source.read(requests)
    assert (observed.state, observed.pending_state) == ("init", "ready")
    assert observed.record == await neon.branches.get(project_id, created.branch.id)
    assert observed.record is not None
    assert observed.record.annotation is not None
    assert str(source) == f"branch {created.branch.id} in {project_id}"


async def test_compute_has_its_record_and_its_branch(neon: NeonClient, requests: Requests) -> None:
    created = await neon.projects.create(name="shop")
    endpoint = created.endpoints[0]
    source = ComputeSource(created.project.id, endpoint.id)
    observed = await source.read(requests)
    assert (observed.state, observed.pending_state) == ("init", "active")
    assert type(observed.state) is type(observed.pending_state) is str
    assert observed.record == await neon.endpoints.get(created.project.id, endpoint.id)
    assert str(source) == f"compute {endpoint.id} in {created.project.id}"


async def test_project_that_is_created_has_the_state_of_its_default_branch(
    neon: NeonClient, requests: Requests
) -> None:
    created = await neon.projects.create(name="shop")
    observed = await ReadyProjectSource(created.project.id).read(requests)
    assert (observed.state, observed.pending_state) == ("init", "ready")


async def test_project_with_a_pending_operation_of_its_default_branch_is_busy(
    neon: NeonClient, requests: Requests
) -> None:
    created = await neon.projects.create(name="shop", wait=True)
    await neon.databases.create(
        created.project.id, created.branch.id, name="more", owner_name=created.roles[0].name
    )
    observed = await ReadyProjectSource(created.project.id).read(requests)
    assert (observed.state, observed.record) == ("busy", None)


async def test_default_branch_is_searched_on_all_pages(
    neon: NeonClient, requests: Requests
) -> None:
    project_id = (await neon.projects.create(name="shop", wait=True)).project.id
    for _ in range(100):
        await neon.branches.create(project_id)
    await neon.operations.wait_for_project(project_id)
    last = await neon.branches.create(project_id)
    await neon.branches.set_as_default(project_id, last.branch.id)
    await neon.operations.wait_for_project(project_id)
    assert (await ReadyProjectSource(project_id).read(requests)).state == "ready"
    assert [name for name, _ in requests.sent] == ["branches", "branches", "operations", project_id]


async def test_project_without_a_default_branch_is_being_created(fake_neon: FakeNeon) -> None:
    fake_neon.fault = lambda request: http_response(
        200,
        {"branches": [branch_json()]} if request.path.endswith("/branches") else {"project": {}},
    )
    with pytest.raises(InvalidResponseError):
        await ReadyProjectSource(PROJECT).read(Requests(fake_neon.client))


async def test_deleted_project_is_not_found(neon: NeonClient, requests: Requests) -> None:
    project_id = (await neon.projects.create(name="shop")).project.id
    source = ProjectSource(project_id)
    observed = await source.read(requests)
    assert (observed.state, observed.record) == ("existing", await neon.projects.get(project_id))
    await neon.projects.delete(project_id)
    with pytest.raises(NotFoundError):
        await source.read(requests)


async def test_record_of_another_object_is_refused(fake_neon: FakeNeon) -> None:
    fake_neon.fault = lambda _request: http_response(200, {"branch": branch_json("br-other-1")})
    with pytest.raises(InvalidResponseError, match=r"'br-other-1' instead of 'br-1'"):
        await BranchSource(PROJECT, "br-1").read(Requests(fake_neon.client))


async def test_one_page_is_read_if_its_older_half_has_finished(fake_neon: FakeNeon) -> None:
    for number in range(300):
        fake_neon.start(str(number), states={0.0: "running" if number > 260 else "finished"})
    found = await newest_operations(PROJECT, Requests(fake_neon.client))
    assert [each.id for each in found] == [str(number) for number in range(299, 199, -1)]
    assert fake_neon.pages == [100]


async def test_older_pages_are_read_while_operations_are_pending(fake_neon: FakeNeon) -> None:
    for number in range(300):
        fake_neon.start(str(number), states={0.0: "running" if number > 220 else "finished"})
    found = await newest_operations(PROJECT, Requests(fake_neon.client))
    assert len(found) == 300
    assert fake_neon.pages == [100, 1000]
