"""The operator and the trigger of examples/airflow_branches, with the real Airflow."""

import asyncio
import importlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from neon_branches import CLIENTS, BranchTrigger, EnsureBranchOperator

from neonctl_async import NeonClient
from neonctl_async.types import BranchCreated, EndpointSpec
from neonctl_local import Durations, LocalControlPlane
from tests.engines.conftest import EXAMPLE
from tests.support.until import until

# These modules of Airflow have no stubs in tests/stubs.
runners: Any = importlib.import_module("airflow.jobs.triggerer_job_runner")
workloads: Any = importlib.import_module("airflow.executors.workloads.trigger")
triggers: Any = importlib.import_module("airflow.models.trigger")

pytestmark = pytest.mark.usefixtures("connection")
COMPUTE = [EndpointSpec(type="read_write")]
BRANCHES = 200


async def new_project(neon: NeonClient) -> str:
    return (await neon.projects.create(name="airflow", wait=True)).project.id


def trigger_of(created: BranchCreated, timeout: float = 60.0) -> BranchTrigger:
    return BranchTrigger(
        conn_id="neon_default",
        project_id=created.branch.project_id,
        branch_id=created.branch.id,
        operation_ids=[operation.id for operation in created.operations],
        deadline=time.time() + timeout,
    )


async def payload_of(trigger: BranchTrigger) -> dict[str, Any]:
    [event] = [event async for event in trigger.run()]
    payload: dict[str, Any] = event.payload
    return payload


async def new_branches(neon: NeonClient, project_id: str) -> list[BranchCreated]:
    """Create branches with one request each."""
    creating = (neon.branches.create(project_id, endpoints=COMPUTE) for _ in range(BRANCHES))
    return await asyncio.gather(*creating)


async def run_triggers(created: Sequence[BranchCreated]) -> list[str | None]:
    """Run a trigger for each branch, as a triggerer does. Return their errors."""
    runner = runners.TriggerRunner()
    for number, one in enumerate(created):
        path, arguments = trigger_of(one).serialize()
        encrypted = triggers.Trigger.encrypt_kwargs(arguments)
        runner.to_create.append(
            workloads.RunTrigger(id=number, classpath=path, encrypted_kwargs=encrypted)
        )
    await runner.create_triggers()
    await until(lambda: all(one["task"].done() for one in runner.triggers.values()), every=0.05)
    await runner.cleanup_finished_triggers()
    assert not runner.failed_triggers
    return [entry.event.payload["error"] for entry in runner.events]


async def wait_alone(control_plane: LocalControlPlane, created: Sequence[BranchCreated]) -> None:
    """Wait for each branch with a client of its own."""

    async def wait(one: BranchCreated) -> None:
        async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
            await neon.operations.wait([operation.ref for operation in one.operations])

    await asyncio.gather(*map(wait, created))


async def run_dag(
    control_plane: LocalControlPlane, folder: Path, *arguments: str
) -> tuple[dict[str, Any], str]:
    """Run the DAG in a new Airflow. Return its result and its log."""
    environment = os.environ | {
        "AIRFLOW_HOME": str(folder),
        "PYTHONPATH": os.pathsep.join([str(EXAMPLE / "plugins"), str(EXAMPLE / "dags")]),
    }
    outputs: list[bytes] = []
    for program in (
        ["-m", "airflow", "db", "migrate"],
        [str(Path(__file__).with_name("dag_run.py")), *arguments],
    ):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *program),
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        outputs += await process.communicate()
        assert process.returncode == 0, outputs[-1].decode()
    assert control_plane.api_key.encode() not in b"".join(outputs)
    files = await asyncio.to_thread(lambda: [*folder.rglob("*.db*")])
    for file in files:
        assert control_plane.api_key.encode() not in await asyncio.to_thread(file.read_bytes)
    return json.loads(outputs[-1].splitlines()[-1]), outputs[-2].decode()


@pytest.mark.control_plane(durations=Durations(default=1.0))
async def test_dag_creates_its_branches_and_stores_no_key(
    control_plane: LocalControlPlane, neon: NeonClient, tmp_path: Path
) -> None:
    project_id = await new_project(neon)
    result, log = await run_dag(control_plane, tmp_path, project_id, "a", "b")
    created = {
        branch.id: branch async for branch in neon.branches.list(project_id) if not branch.default
    }
    assert {branch.name for branch in created.values()} == {"a", "b"}
    assert {branch.current_state for branch in created.values()} == {"ready"}
    assert all(branch.expires_at for branch in created.values())
    assert {*result["results"]} == {*created}
    assert result["states"] == ["branch success"] * 2 + ["names success"] + ["use success"] * 2
    assert all(f"{branch_id} is ready" in log for branch_id in created)


async def test_failed_operation_fails_the_task_with_its_message(
    control_plane: LocalControlPlane, neon: NeonClient, tmp_path: Path
) -> None:
    project_id = await new_project(neon)
    await control_plane.fail_next("create_branch", error="no space left")
    result, log = await run_dag(control_plane, tmp_path, project_id, "a")
    assert "branch failed" in result["states"]
    assert "use upstream_failed" in result["states"]
    assert "is not ready" in log
    assert "no space left" in log


@pytest.mark.control_plane(durations=Durations(default=4.0), lock="none")
async def test_triggers_of_a_triggerer_share_their_polls(
    control_plane: LocalControlPlane, neon: NeonClient
) -> None:
    project_ids = [await new_project(neon) for _ in range(2)]
    before = control_plane.requests_served
    errors = await run_triggers(await new_branches(neon, project_ids[0]))
    shared = control_plane.requests_served - before - BRANCHES
    assert errors == [None] * BRANCHES
    assert CLIENTS.open == {}

    before = control_plane.requests_served
    await wait_alone(control_plane, await new_branches(neon, project_ids[1]))
    alone = control_plane.requests_served - before - BRANCHES
    assert alone >= BRANCHES
    assert shared * 5 < alone


@pytest.mark.control_plane(durations=Durations(default=1.0))
async def test_cancelled_trigger_leaves_the_client_to_the_others(neon: NeonClient) -> None:
    project_id = await new_project(neon)
    waiting = [trigger_of(await neon.branches.create(project_id)) for _ in range(2)]
    first, second = [asyncio.create_task(payload_of(trigger)) for trigger in waiting]
    await until(lambda: [shared.users for shared in CLIENTS.open.values()] == [2])
    first.cancel()
    assert (await second)["error"] is None
    assert first.cancelled()
    assert CLIENTS.open == {}


@pytest.mark.control_plane(durations=Durations(default=60.0), lock="none")
async def test_wait_ends_at_the_deadline_of_the_task(neon: NeonClient) -> None:
    project_id = (await neon.projects.create(name="airflow")).project.id
    created = await neon.branches.create(project_id)
    payload = await payload_of(trigger_of(created, timeout=0.2))
    assert payload["branch_id"] == created.branch.id
    assert "create_branch" in payload["error"]


async def test_trigger_stores_ids_but_no_key(
    control_plane: LocalControlPlane, neon: NeonClient
) -> None:
    trigger = trigger_of(await neon.branches.create(await new_project(neon)))
    path, arguments = trigger.serialize()
    assert path == "neon_branches.BranchTrigger"
    assert BranchTrigger(**json.loads(json.dumps(arguments))).serialize() == (path, arguments)
    assert control_plane.api_key not in json.dumps(arguments)


async def test_task_with_a_ready_branch_does_not_wait(neon: NeonClient) -> None:
    project_id = await new_project(neon)
    ready = await neon.branches.create(project_id, name="a", endpoints=COMPUTE, wait=True)
    operator = EnsureBranchOperator(task_id="branch", project_id=project_id, branch="a")
    assert await asyncio.to_thread(operator.execute, {}) == ready.branch.id
