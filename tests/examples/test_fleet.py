"""The fleet example, killed at any point, finally creates what its file lists."""

import asyncio
import itertools
import random
import re
import signal
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from neonctl_async import NeonClient
from neonctl_local import Durations, Fault, LocalControlPlane
from tests.provisioning.helpers import inject_faults
from tests.support.forks import Forks, forks_of
from tests.support.until import until

pytestmark = [
    pytest.mark.process,
    pytest.mark.control_plane(durations=Durations(default=0.1), lock="none"),
]

FLEET = Path(__file__).parents[2] / "examples" / "fleet.py"
PROJECT = "acme"
CREATE = "POST /projects/{project_id}/branches"
LATE = 0.2
"""The delay of a late request, in seconds: longer than a restarted run needs to list branches."""
KILLS = 10
TENANTS = 100
SOAK = range(1, 5)


def names(count: int) -> list[str]:
    return [f"preview-{number}" for number in range(count)]


def read(file: Path) -> str:
    return file.read_text() if file.exists() else ""


class Runs:
    """Runs of the example, one after another, with one file of tenants."""

    def __init__(self, forks: Forks, directory: Path, environment: Mapping[str, str]) -> None:
        self.data = directory / "fleet.db"
        self.tenants = directory / "tenants.csv"
        self.output = directory / "output"
        self.projects = [PROJECT]
        """The projects, each of which gets a branch in turn."""
        self._forks = forks
        self._environment = environment

    async def start(self, count: int, *more: str) -> None:
        """Start a run that should create ``count`` branches."""
        rows = [
            f"{project},aws-us-east-2,{name},0.5"
            for project, name in zip(itertools.cycle(self.projects), names(count), strict=False)
        ]
        lines = "\n".join(["project,region,branch,max_cu", *rows])
        await asyncio.to_thread(self.tenants.write_text, lines)
        arguments = (str(self.tenants), "--data", str(self.data), *more)
        await self._forks.start(*arguments, environment=self._environment, output=self.output)

    async def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        """Kill the run if it is still running; return its exit code."""
        self._forks.kill(number)
        return await self._forks.end()

    async def finish(self, count: int, *more: str) -> tuple[int, str]:
        """Run until the end; return the exit code and the last line of the output."""
        await self.start(count, *more)
        code = await self._forks.end()
        output = await asyncio.to_thread(self.output.read_text)
        assert "Traceback" not in output
        return code, output.splitlines()[-1]


class Provisioning:
    """The example, with a project in a control plane that keeps running."""

    def __init__(
        self, runs: Runs, control_plane: LocalControlPlane, neon: NeonClient, project_id: str
    ) -> None:
        self.runs = runs
        self.control_plane = control_plane
        self.neon = neon
        self.project_id = project_id

    @property
    def creations(self) -> list[int]:
        """The statuses of the creations of branches, in the order in which they were served."""
        path = f"/projects/{self.project_id}/branches"
        return [status for *what, status in self.control_plane.requests if what == ["POST", path]]

    async def wait_for_kill_time(self, chance: random.Random) -> None:
        """Return when the process should be killed: at a random or a critical time."""
        match chance.choice(["any time", "served", "late", "no response"]):
            case "any time":
                await asyncio.sleep(chance.uniform(0.0, 0.3))
            case "served":
                served = self.control_plane.requests_served + chance.randint(1, 10)
                await until(lambda: self.control_plane.requests_served >= served)
            case "late":
                late = self.control_plane.inject(Fault(route=CREATE, delay=LATE))
                await until(lambda: late.fired >= 1)
            case _:
                lost = self.control_plane.inject(Fault(route=CREATE, hang=True, when="after"))
                await until(lambda: lost.fired >= 1)

    async def check(self, count: int) -> None:
        """Check that each branch was created once and is ready."""
        projects = {one.name: one.id for one in await self.neon.projects.list().collect()}
        assert sorted(projects) == sorted(self.runs.projects)
        for number, name in enumerate(self.runs.projects):
            await self._check_project(
                projects[name], names(count)[number :: len(self.runs.projects)]
            )

    async def _check_project(self, project_id: str, expected: list[str]) -> None:
        branches = await self.neon.branches.list(project_id).collect()
        ids = {branch.name: branch.id for branch in branches if not branch.default}
        assert sorted(ids) == sorted(expected)
        assert len(branches) == len(expected) + 1
        computes = await self.neon.endpoints.list(project_id)
        assert {one.branch_id for one in computes} == {one.id for one in branches}
        assert len(computes) == len(branches)
        operations = await self.neon.operations.list(project_id).collect()
        assert {operation.status for operation in operations} == {"finished"}
        created = Counter(one.branch_id for one in operations if one.action == "create_branch")
        assert created == dict.fromkeys(ids.values(), 1)


@pytest.fixture(scope="module")
def forks() -> Generator[Forks]:
    with forks_of(FLEET) as forks:
        yield forks


@pytest.fixture
def environment(control_plane: LocalControlPlane) -> dict[str, str]:
    return {"NEON_API_KEY": control_plane.api_key, "NEON_API_HOST": control_plane.base_url}


@pytest.fixture
async def provisioning(
    forks: Forks,
    tmp_path: Path,
    environment: dict[str, str],
    control_plane: LocalControlPlane,
    neon: NeonClient,
) -> Provisioning:
    project_id = (await neon.projects.create(name=PROJECT)).project.id
    return Provisioning(Runs(forks, tmp_path, environment), control_plane, neon, project_id)


seeds = pytest.mark.parametrize(
    "seed",
    [
        pytest.param(0, marks=pytest.mark.scale),
        *(pytest.param(seed, marks=pytest.mark.soak) for seed in SOAK),
    ],
)


@seeds
async def test_repeatedly_killed_runs_create_every_branch_once(
    provisioning: Provisioning, seed: int
) -> None:
    runs, chance = provisioning.runs, random.Random(seed)
    for count in range(1, KILLS + 1):  # more branches each time, so that each run has work
        await runs.start(2 * count)
        with suppress(TimeoutError):
            async with asyncio.timeout(0.3):  # a run without work sends no such request
                await provisioning.wait_for_kill_time(chance)
        assert await runs.kill() in (-signal.SIGKILL, 0)
        provisioning.control_plane.clear_faults()
    code, outcome = await runs.finish(2 * KILLS)
    assert code == 0
    assert outcome.startswith(f"{2 * KILLS} of {2 * KILLS} tenants are done")
    await asyncio.sleep(LATE)  # for requests that are still delayed
    assert set(provisioning.creations) <= {0, 201, 409}
    await provisioning.check(2 * KILLS)


@seeds
async def test_killed_runs_create_every_project_and_branch_once_despite_faults(
    provisioning: Provisioning, seed: int
) -> None:
    runs, control_plane, chance = provisioning.runs, provisioning.control_plane, random.Random(seed)
    runs.projects += [f"{PROJECT}-{number}" for number in range(1, 10)]
    inject_faults(control_plane, seed)
    lost = Fault(route="POST /projects", when="after", drop=True, probability=0.2, seed=seed)
    control_plane.inject(lost)
    for _ in range(KILLS):
        await runs.start(TENANTS)
        await asyncio.sleep(chance.uniform(0.0, 1.0))
        await runs.kill()
    while (await runs.finish(TENANTS))[0] != 0:
        pass
    control_plane.clear_faults()
    await provisioning.check(TENANTS)


async def test_late_request_of_a_killed_process_creates_no_second_branch(
    provisioning: Provisioning,
) -> None:
    late = provisioning.control_plane.inject(Fault(route=CREATE, delay=1.0, times=1))
    await provisioning.runs.start(1)
    await until(lambda: late.fired == 1)
    await provisioning.runs.kill()
    assert await provisioning.runs.finish(1) == (0, "1 of 1 tenants are done: 1 created, 0 adopted")
    await until(lambda: len(provisioning.creations) == 2)
    assert provisioning.creations == [201, 409]
    await provisioning.check(1)


async def test_creation_with_unknown_result_is_adopted(provisioning: Provisioning) -> None:
    provisioning.control_plane.inject(Fault(route=CREATE, when="after", drop=True, times=1))
    provisioning.control_plane.inject(Fault(route=CREATE, when="after", status=502, times=1))
    assert await provisioning.runs.finish(3) == (0, "3 of 3 tenants are done: 1 created, 2 adopted")
    assert sorted(provisioning.creations) == [0, 201, 502]
    await provisioning.check(3)


async def test_failed_branch_is_reported_and_created_again_after_its_deletion(
    provisioning: Provisioning,
) -> None:
    provisioning.control_plane.inject(Fault(route=CREATE, when="after", drop=True, times=2))
    await provisioning.control_plane.fail_next("create_branch")
    assert await provisioning.runs.finish(2) == (
        1,
        "1 of 2 tenants are done: 0 created, 1 adopted, 1 failed",
    )
    branches = provisioning.neon.branches
    for branch in await branches.list(provisioning.project_id).collect():
        if branch.current_state == "init":
            await branches.delete(provisioning.project_id, branch.id)
    assert await provisioning.runs.finish(2) == (0, "2 of 2 tenants are done: 1 created, 1 adopted")


@pytest.mark.long
async def test_local_control_plane_of_the_example_survives_a_kill(
    forks: Forks, tmp_path: Path
) -> None:
    runs = Runs(forks, tmp_path, {})
    await runs.start(3)
    while "is ready at" not in await asyncio.to_thread(read, runs.output):
        pass
    await runs.kill()
    code, outcome = await runs.finish(3)
    assert code == 0
    assert re.fullmatch(r"3 of 3 tenants are done: \d created, [123] adopted", outcome)


async def test_sample_creates_the_projects_of_its_tenants(
    forks: Forks, tmp_path: Path, environment: dict[str, str], neon: NeonClient
) -> None:
    log = tmp_path / "output"
    await forks.start("--canary", "2", environment=environment, output=log)
    assert await forks.end() == 0
    output = await asyncio.to_thread(log.read_text)
    assert output.splitlines()[-1] == "40 of 40 tenants are done: 40 created, 0 adopted"
    projects = await neon.projects.list().collect()
    assert len(projects) == 20
    for project in projects:
        branches = await neon.branches.list(project.id).collect()
        assert {branch.name for branch in branches} == {"main", "production", "staging"}


async def test_failed_branches_are_reported_and_do_not_affect_others(
    forks: Forks, tmp_path: Path
) -> None:
    runs = Runs(forks, tmp_path, {})
    assert await runs.finish(6, "--fail", "2") == (
        1,
        "4 of 6 tenants are done: 4 created, 0 adopted, 2 failed",
    )
    output = await asyncio.to_thread(runs.output.read_text)
    failed = (
        r"^acme/preview-. is not ready: 2 of 2 operations .*"
        r"; delete the branch, then run the program again$"
    )
    assert len(re.findall(failed, output, re.MULTILINE)) == 2


async def test_interrupted_run_prints_how_to_continue(provisioning: Provisioning) -> None:
    provisioning.control_plane.inject(Fault(route=CREATE, hang=True, when="after"))
    await provisioning.runs.start(2)
    await until(lambda: provisioning.control_plane.faults[0].fired == 2)
    assert await provisioning.runs.kill(signal.SIGINT) == 130
    output = await asyncio.to_thread(provisioning.runs.output.read_text)
    assert output.splitlines()[-1] == "interrupted; run the program again to continue"
    provisioning.control_plane.clear_faults()
    assert await provisioning.runs.finish(2) == (0, "2 of 2 tenants are done: 0 created, 2 adopted")
    await provisioning.check(2)


async def test_two_projects_of_a_name_stop_the_run_before_any_creation(
    provisioning: Provisioning,
) -> None:
    other = await provisioning.neon.projects.create(name=PROJECT)
    code, outcome = await provisioning.runs.finish(2)
    assert code == 1
    assert outcome.startswith("2 projects match 'acme': ")
    assert {other.project.id, provisioning.project_id} <= set(re.findall(r"[\w-]+", outcome))
    assert provisioning.creations == []


async def test_invalid_line_stops_the_run(forks: Forks, tmp_path: Path) -> None:
    tenants = tmp_path / "tenants.csv"
    lines = "project,region,branch,max_cu\nacme,aws-us-east-2,preview,big\n"
    await asyncio.to_thread(tenants.write_text, lines)
    output = tmp_path / "output"
    await forks.start(str(tenants), environment={}, output=output)
    assert await forks.end() == 1
    assert await asyncio.to_thread(output.read_text) == (
        "tenants.csv, line 2: max_cu is 'big': expected a number from 0.25 to 1024\n"
    )
