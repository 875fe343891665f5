"""The code of docs/engines.md runs with Prefect and Temporal."""

import asyncio
import importlib
from pathlib import Path
from typing import Any

import pytest

from neonctl_async import NeonClient
from neonctl_async.local import Durations, LocalControlPlane
from tests.support.pages import TEXTS, code_blocks

NAMES = [f"preview-{number}" for number in range(5)]


@pytest.fixture
def environment(control_plane: LocalControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEON_API_KEY", control_plane.api_key)
    monkeypatch.setenv("NEON_API_HOST", control_plane.base_url)


def recipe(engine: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import the code of an engine. Temporal imports it again, in its sandbox."""
    [(_, code)] = code_blocks(TEXTS["docs/engines.md"], f'python title="{engine}"')
    name = f"recipe_{engine.lower()}"
    (folder / f"{name}.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    return importlib.import_module(name)


async def branch_names(neon: NeonClient, project_id: str) -> dict[str, str]:
    """Return the names of the branches by id, without the default branch."""
    branches = neon.branches.list(project_id)
    return {branch.id: branch.name async for branch in branches if not branch.default}


@pytest.mark.usefixtures("environment")
async def test_flow_of_prefect_creates_its_branches_once(
    neon: NeonClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project_id = (await neon.projects.create(wait=True)).project.id
    code = await asyncio.to_thread(recipe, "Prefect", tmp_path, monkeypatch)
    harness: Any = importlib.import_module("prefect.testing.utilities").prefect_test_harness

    def run() -> list[list[str]]:
        with harness():
            return [asyncio.run(code.previews(project_id, NAMES)) for _ in range(2)]

    first, second = await asyncio.to_thread(run)
    created = await branch_names(neon, project_id)
    assert [created[one] for one in first] == NAMES
    assert second == first


@pytest.mark.control_plane(durations=Durations(default=1.0))
async def test_activity_of_temporal_sends_heartbeats_and_can_be_repeated(
    neon: NeonClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project_id = (await neon.projects.create(wait=True)).project.id
    code = await asyncio.to_thread(recipe, "Temporal", tmp_path, monkeypatch)
    testing: Any = importlib.import_module("temporalio.testing")
    activities = code.BranchActivities(neon)
    beats: list[str] = []

    async def run(name: str) -> str:
        environment = testing.ActivityEnvironment()
        environment.on_heartbeat = lambda *_: beats.append(name)
        result: str = await environment.run(
            activities.ensure_branch, code.Preview(project_id, name)
        )
        return result

    first = await asyncio.gather(*map(run, NAMES))
    second = await asyncio.gather(*map(run, NAMES))
    created = await branch_names(neon, project_id)
    assert [created[one] for one in first] == NAMES
    assert second == first
    assert {*beats} == {*NAMES}


async def test_sandbox_of_temporal_loads_the_workflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = await asyncio.to_thread(recipe, "Temporal", tmp_path, monkeypatch)
    worker: Any = importlib.import_module("temporalio.worker")
    await asyncio.to_thread(worker.Replayer, workflows=[code.PreviewWorkflow])
