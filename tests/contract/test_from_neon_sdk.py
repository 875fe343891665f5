"""The page for users of @neon/sdk: its code runs, and its statements about the SDK are true."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from neonctl_async import NeonClient
from neonctl_local import Durations, Fault, LocalControlPlane
from tests.contract.node import NEON_SDK, copy_programs, run_on
from tests.support.methods import resources
from tests.support.pages import code_blocks, names_side_by_side

pytestmark = pytest.mark.contract

PAGE = Path(__file__).parents[2] / "docs" / "from-neon-sdk.md"
TEXT = PAGE.read_text(encoding="utf-8")
POLL = "GET /projects/{project_id}/operations/{operation_id}"
CREATE = "POST /projects/{project_id}/branches"
CREATE_BRANCH = "neon.branches.create({ projectId, name: 'preview' })"
GET_PROJECT = "neon.projects.get({ projectId })"
BLOCKS = [code for _, code in code_blocks(TEXT, 'js title="@neon/sdk"')]


class SDK:
    """Runs code of the SDK on a local control plane that has one project."""

    def __init__(self, control_plane: LocalControlPlane, project_id: str, folder: Path) -> None:
        self.control_plane = control_plane
        self.project_id = project_id
        self._folder = folder

    # Any: each program prints different JSON.
    async def run(self, *command: str) -> Any:
        """Run a program, and return its output."""
        return await run_on(self.control_plane, self.project_id, self._folder, *command)

    async def evaluate(self, expression: str) -> Any:
        """Return ``data``, ``error`` and the logged text of an expression."""
        return await self.run("evaluate.mjs", expression)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """The folder of the programs and of the blocks of the page."""
    copy_programs(NEON_SDK, tmp_path)
    for number, code in enumerate(BLOCKS):
        (tmp_path / f"block{number}.mjs").write_text(code)
    return tmp_path


@pytest.fixture
async def sdk(programs: Path) -> AsyncIterator[SDK]:
    # The SDK fails if a locked project answers 423.
    durations = Durations(default=0.05)
    async with LocalControlPlane(durations=durations, lock="none") as control_plane:
        async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
            created = await neon.projects.create(name="docs", wait=True)
        yield SDK(control_plane, created.project.id, programs)


async def test_code_of_the_sdk_runs_from_top_to_bottom(sdk: SDK) -> None:
    await sdk.run("blocks.mjs", *(f"block{number}.mjs" for number in range(len(BLOCKS))))
    async with NeonClient(sdk.control_plane.api_key, base_url=sdk.control_plane.base_url) as neon:
        branches = await neon.branches.list(sdk.project_id).collect()
    assert {"preview", "in-a-minute", "c", "careful"} < {branch.name for branch in branches}


async def test_table_lists_every_method_of_the_sdk(sdk: SDK) -> None:
    methods = await sdk.run("names.mjs")
    listed = {name for theirs, _ in names_side_by_side(TEXT) for name in theirs}
    assert {*methods} == listed


def test_table_names_existing_methods_of_this_library() -> None:
    kinds = dict(resources())
    listed = {name for _, ours in names_side_by_side(TEXT) for name in ours}
    for name in listed - {"request"}:
        resource, _, method = name.partition(".")
        assert hasattr(kinds[resource], method), name


@pytest.mark.parametrize("status", [429, 503])
async def test_failed_poll_ends_the_wait_and_the_error_lacks_the_branch(
    sdk: SDK, status: int
) -> None:
    sdk.control_plane.inject(Fault(route=POLL, status=status, times=1))
    outcome = await sdk.evaluate(CREATE_BRANCH)
    assert "data" not in outcome
    assert outcome["error"]["status"] == status


@pytest.mark.parametrize("retry_after", [None, 60.0])
async def test_failed_operation_ends_the_wait_and_the_error_lacks_the_branch(
    sdk: SDK, retry_after: float | None
) -> None:
    await sdk.control_plane.fail_next("create_branch", retry_after=retry_after)
    outcome = await sdk.evaluate(CREATE_BRANCH)
    assert "data" not in outcome
    assert outcome["error"] == {"name": "NeonOperationError", "status": "failed"}


async def test_timeout_of_a_wait_reports_the_pending_operations(sdk: SDK) -> None:
    await sdk.control_plane.fail_next("create_branch", retry_after=60.0)
    outcome = await sdk.evaluate("neon.branches.create({ projectId }, { wait: { timeoutMs: 1 } })")
    assert outcome["error"]["name"] == "NeonWaitTimeoutError"
    assert {operation["project_id"] for operation in outcome["error"]["operations"]} == {
        sdk.project_id
    }


@pytest.mark.parametrize(
    ("expression", "fault", "requests"),
    [
        (CREATE_BRANCH, Fault(route=CREATE, status=423), 3),
        (GET_PROJECT, Fault(route="GET /projects/{project_id}", status=429), 3),
        (GET_PROJECT, Fault(route="GET /projects/{project_id}", status=500), 1),
        (GET_PROJECT, Fault(route="GET /projects/{project_id}", drop=True), 1),
        ("neon.projects.list().all()", Fault(route="GET /projects", status=503), 1),
    ],
)
async def test_number_of_retries_is_the_number_on_the_page(
    sdk: SDK, expression: str, fault: Fault, requests: int
) -> None:
    active = sdk.control_plane.inject(fault)
    assert "data" not in await sdk.evaluate(expression)
    assert active.fired == requests


async def test_wait_polls_each_operation_separately(sdk: SDK) -> None:
    before = sdk.control_plane.requests_served
    await sdk.evaluate(CREATE_BRANCH)
    paths = [request.path for request in sdk.control_plane.requests][before:]
    assert len({path for path in paths if "/operations/" in path}) == 2


async def test_logged_result_contains_the_password(sdk: SDK) -> None:
    [branch] = (await sdk.evaluate("neon.branches.list({ projectId }).all()"))["data"]
    outcome = await sdk.evaluate(
        f"neon.postgres.roles.create({{ projectId, branchId: '{branch['id']}', name: 'x' }})"
    )
    assert outcome["data"]["password"] in outcome["logged"]


async def test_only_raw_results_contain_the_key(sdk: SDK) -> None:
    raw = "raw.getProject({ client: neon.client, path: { project_id: projectId } })"
    assert sdk.control_plane.api_key in (await sdk.evaluate(raw))["logged"]
    assert sdk.control_plane.api_key not in (await sdk.evaluate(GET_PROJECT))["logged"]
