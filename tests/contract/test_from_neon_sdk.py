"""The page for those who come from @neon/sdk shows code of it that runs, and what it does."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from neonctl_async import NeonClient
from neonctl_async.local import Durations, Fault, LocalControlPlane
from tests.contract.node import prepare, run
from tests.support.pages import code_blocks, names_side_by_side

pytestmark = pytest.mark.contract

PAGE = Path(__file__).parents[2] / "docs" / "from-neon-sdk.md"
TEXT = PAGE.read_text(encoding="utf-8")
POLL = "GET /projects/{project_id}/operations/{operation_id}"
CREATE = "POST /projects/{project_id}/branches"
CREATING = "neon.branches.create({ projectId, name: 'preview' })"


BLOCKS = [code for _, code in code_blocks(TEXT, 'js title="@neon/sdk"')]


class Given:
    """A control plane with a project, and programs that use it."""

    def __init__(self, control_plane: LocalControlPlane, project_id: str, folder: Path) -> None:
        self.control_plane = control_plane
        self.project_id = project_id
        self._folder = folder

    # Any: each program prints JSON of its own.
    async def run(self, *command: str) -> Any:
        """What a program prints."""
        return await run(
            self._folder, *command, control_plane=self.control_plane, project_id=self.project_id
        )

    async def outcome(self, expression: str) -> Any:
        """What becomes of an expression."""
        return await self.run("outcome.mjs", expression)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Where they are, the blocks of the page among them."""
    prepare(tmp_path)
    for number, code in enumerate(BLOCKS):
        (tmp_path / f"block{number}.mjs").write_text(code)
    return tmp_path


@pytest.fixture
async def given(programs: Path) -> AsyncIterator[Given]:
    async with LocalControlPlane(durations=Durations(default=0.05)) as control_plane:
        async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
            created = await neon.projects.create(name="docs", wait=True)
        yield Given(control_plane, created.project.id, programs)


async def test_the_code_of_the_sdk_runs_from_top_to_bottom(given: Given) -> None:
    await given.run("blocks.mjs", *(f"block{number}.mjs" for number in range(len(BLOCKS))))
    async with NeonClient(
        given.control_plane.api_key, base_url=given.control_plane.base_url
    ) as neon:
        branches = await neon.branches.list(given.project_id).collect()
    assert {"preview", "in-a-minute", "c", "careful"} < {branch.name for branch in branches}


async def test_every_method_of_the_sdk_has_its_row(given: Given) -> None:
    names = await given.run("names.mjs")
    named = {name for there, _ in names_side_by_side(TEXT) for name in there}
    groups = tuple(name.removesuffix("*") for name in named if name.endswith("*"))
    assert {name for name in names if not name.startswith(groups)} == {
        name for name in named if not name.endswith("*")
    }


def test_what_the_rows_name_here_exists() -> None:
    resources = NeonClient.__annotations__
    ours = (name for _, names in names_side_by_side(TEXT) for name in names)
    for name in (name for name in ours if name != "request"):
        resource, _, method = name.partition(".")
        assert hasattr(resources[resource], method), name


@pytest.mark.parametrize("status", [429, 503])
async def test_a_poll_that_fails_ends_a_wait_that_then_tells_of_no_branch(
    given: Given, status: int
) -> None:
    given.control_plane.inject(Fault(route=POLL, status=status, times=1))
    seen = await given.outcome(CREATING)
    assert "data" not in seen
    assert seen["error"]["status"] == status


@pytest.mark.parametrize("retry_after", [None, 60.0])
async def test_a_failed_operation_ends_a_wait_that_then_tells_of_no_branch(
    given: Given, retry_after: float | None
) -> None:
    await given.control_plane.fail_next("create_branch", retry_after=retry_after)
    seen = await given.outcome(CREATING)
    assert "data" not in seen
    assert seen["error"] == {"name": "NeonOperationError", "status": "failed"}


async def test_a_wait_that_times_out_tells_what_is_pending(given: Given) -> None:
    await given.control_plane.fail_next("create_branch", retry_after=60.0)
    creating = "neon.branches.create({ projectId }, { wait: { timeoutMs: 1 } })"
    seen = await given.outcome(creating)
    assert seen["error"]["name"] == "NeonWaitTimeoutError"
    assert {one["project_id"] for one in seen["error"]["operations"]} == {given.project_id}


@pytest.mark.parametrize(
    ("expression", "fault", "requests"),
    [
        (CREATING, Fault(route=CREATE, status=423), 3),
        (
            "neon.projects.get({ projectId })",
            Fault(route="GET /projects/{project_id}", status=429),
            3,
        ),
        (
            "neon.projects.get({ projectId })",
            Fault(route="GET /projects/{project_id}", status=500),
            1,
        ),
        (
            "neon.projects.get({ projectId })",
            Fault(route="GET /projects/{project_id}", drop=True),
            1,
        ),
        ("neon.projects.list().all()", Fault(route="GET /projects", status=503), 1),
    ],
)
async def test_requests_are_sent_as_often_as_the_page_says(
    given: Given, expression: str, fault: Fault, requests: int
) -> None:
    planned = given.control_plane.inject(fault)
    seen = await given.outcome(expression)
    assert "data" not in seen
    assert planned.fired == requests


async def test_each_operation_is_asked_for_by_itself(given: Given) -> None:
    before = given.control_plane.requests_served
    await given.outcome(CREATING)
    polls = [one.path for one in given.control_plane.requests][before:]
    assert len({path for path in polls if "/operations/" in path}) == 2


async def test_a_password_shows_in_what_is_logged(given: Given) -> None:
    [branch] = (await given.outcome("neon.branches.list({ projectId }).all()"))["data"]
    creating = f"neon.postgres.roles.create({{ projectId, branchId: '{branch['id']}', name: 'x' }})"
    seen = await given.outcome(creating)
    assert seen["data"]["password"] in seen["shown"]


async def test_a_raw_result_shows_the_key_and_others_do_not(given: Given) -> None:
    raw = "raw.getProject({ client: neon.client, path: { project_id: projectId } })"
    getting = "neon.projects.get({ projectId })"
    assert given.control_plane.api_key in (await given.outcome(raw))["shown"]
    assert given.control_plane.api_key not in (await given.outcome(getting))["shown"]
