"""The example that shows the operations of a project live."""

import asyncio
import signal

import pytest

from neonctl_async import NeonClient, Operation
from neonctl_local import Durations, Fault, LocalControlPlane
from tests.support.examples import run, started
from tests.support.until import until

pytestmark = [pytest.mark.process, pytest.mark.scale]
EXAMPLE = "watch_project.py"
LIST = "GET /projects/{project_id}/operations"


async def lines_until(output: asyncio.StreamReader, text: str) -> list[str]:
    """Read lines up to the one that contains ``text``."""
    lines = [(await output.readline()).decode()]
    while text not in lines[-1]:
        assert lines[-1], lines
        lines.append((await output.readline()).decode())
    return lines


def statuses(lines: list[str], operation: Operation) -> list[str]:
    """Return the statuses that were shown for an operation."""
    place = operation.endpoint_id or operation.branch_id or ""
    return [line.split()[2] for line in lines if f" {operation.action} " in line and place in line]


@pytest.mark.usefixtures("interruptible")
@pytest.mark.control_plane(durations=Durations(default=0.1))
async def test_operations_of_other_users_are_shown_until_interrupted(
    control_plane: LocalControlPlane, neon: NeonClient
) -> None:
    created_project = await neon.projects.create(wait=True)
    project_id = created_project.project.id
    async with started(control_plane, EXAMPLE, project_id, "--every", "0.05") as process:
        assert process.stdout is not None
        lines = await lines_until(process.stdout, "create_timeline finished")
        lost = control_plane.inject(Fault(route=LIST, status=501, times=1))
        await until(lambda: lost.fired == 1)  # the list is read again
        created = await neon.branches.create(project_id)
        await control_plane.fail_next("delete_timeline", error="out of order")
        lines += await lines_until(process.stdout, "create_branch finished")
        deleted = await neon.branches.delete(project_id, created.branch.id)
        lines += await lines_until(process.stdout, "delete_timeline failed")
        process.send_signal(signal.SIGINT)
        await process.communicate()
    assert process.returncode == 130
    for operation in created_project.operations:
        assert statuses(lines, operation) == ["finished"]
    assert statuses(lines, created.operations[0])[-1] == "finished"
    assert statuses(lines, deleted.operations[-1])[-1] == "failed"
    assert lines[-1].endswith(": out of order\n")


async def test_program_ends_when_the_time_is_over() -> None:
    code, output, errors = await run(None, EXAMPLE, "--for", "0.2")
    assert (code, errors) == (0, "")
    assert ": watching " in output


async def test_operations_of_a_simulated_user_are_shown_without_a_key() -> None:
    async with started(None, EXAMPLE, "--every", "0.05") as process:
        assert process.stdout is not None
        await lines_until(process.stdout, "create_branch finished")


async def test_missing_project_is_reported(control_plane: LocalControlPlane) -> None:
    code, _, errors = await run(control_plane, EXAMPLE, "late-frost-12345678")
    assert code == 1
    assert "404" in errors
    assert "Traceback" not in errors
