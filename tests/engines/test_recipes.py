"""The code of docs/recipes.md runs with Prefect and Temporal."""

import asyncio
import functools
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from neonctl_async import NeonClient
from neonctl_local import Durations, LocalControlPlane
from tests.support.pages import TEXTS, code_blocks

# Imported by name: only the environment of make engines contains these packages. Imported here,
# because imports read files, which would block the loop of a test.
testing: Any = importlib.import_module("temporalio.testing")
worker: Any = importlib.import_module("temporalio.worker")

NAMES = [f"preview-{number}" for number in range(5)]


PREFECT = """
import asyncio, json
from prefect.testing.utilities import prefect_test_harness
import {module}

with prefect_test_harness():
    runs = [asyncio.run({module}.previews({project_id!r}, {names})) for _ in range(2)]
print(json.dumps(runs))
"""


def written(engine: str, folder: Path) -> str:
    """Write the code of an engine to a module. Return its name."""
    [(_, code)] = code_blocks(TEXTS["docs/recipes.md"], f'python title="{engine}"')
    name = f"recipe_{engine.lower()}"
    (folder / f"{name}.py").write_text(code, encoding="utf-8")
    return name


def temporal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import the code of Temporal, which imports it again in its sandbox."""
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    return importlib.import_module(written("Temporal", folder))


async def branch_names(neon: NeonClient, project_id: str) -> dict[str, str]:
    """Return the names of the branches by id, without the default branch."""
    branches = neon.branches.list(project_id)
    return {branch.id: branch.name async for branch in branches if not branch.default}


async def test_flow_of_prefect_creates_its_branches_once(
    control_plane: LocalControlPlane, neon: NeonClient, tmp_path: Path
) -> None:
    """A process of its own, because Prefect sends requests that block the loop of a flow."""
    project_id = (await neon.projects.create(wait=True)).project.id
    module = await asyncio.to_thread(written, "Prefect", tmp_path)
    program = PREFECT.format(module=module, project_id=project_id, names=NAMES)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program),
        cwd=tmp_path,
        env=os.environ
        | {"NEON_API_KEY": control_plane.api_key, "NEON_API_HOST": control_plane.base_url},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    first, second = json.loads(output.splitlines()[-1])
    created = await branch_names(neon, project_id)
    assert [created[one] for one in first] == NAMES
    assert second == first


@pytest.mark.control_plane(durations=Durations(default=1.0))
async def test_activity_of_temporal_sends_heartbeats_and_can_be_repeated(
    neon: NeonClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project_id = (await neon.projects.create(wait=True)).project.id
    code = await asyncio.to_thread(temporal, tmp_path, monkeypatch)
    activities = code.BranchActivities(neon)
    beats: list[str] = []

    def note(name: str, *_details: object) -> None:
        beats.append(name)

    async def run(name: str) -> str:
        environment = testing.ActivityEnvironment()
        environment.on_heartbeat = functools.partial(note, name)
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
    code = await asyncio.to_thread(temporal, tmp_path, monkeypatch)
    await asyncio.to_thread(worker.Replayer, workflows=[code.PreviewWorkflow])
