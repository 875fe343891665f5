"""The example of a database branch for each pull request: its workflow and its migrations."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest

from neonctl_async import NeonClient
from neonctl_async.types import Branch
from neonctl_local import Durations, LocalControlPlane, ManualClock
from tests.support.databases import databases
from tests.support.examples import EXAMPLES
from tests.support.pages import ROOT, TEXTS, code_blocks
from tests.support.postgres import CACHE, skip_without_postgres
from tests.support.workflows import Runner, read_workflow

FOLDER = EXAMPLES / "preview"
WORKFLOW = read_workflow(FOLDER / "preview.yml")
BRANCH = "preview/pr-7"
CONNECT = "Set DATABASE_URL, hidden in the log"
DATABASE = ["Migrate", "Test"]
"""The steps that need a real database."""
GH = """\
if [ "$2" = comment ]; then echo "gh $*"; else printf 'preview/pr-%s\\n' 4 5; fi"""
"""Stands for ``gh``: prints a comment. Two pull requests are closed."""


def runner_of(control_plane: LocalControlPlane, project_id: str, folder: Path) -> Runner:
    """Return a runner for pull request 7."""
    return Runner(
        WORKFLOW,
        folder,
        values={
            "github.event.number": "7",
            "github.token": "token",
            "secrets.NEON_API_KEY": control_plane.api_key,
            "vars.NEON_PROJECT_ID": project_id,
        },
        environment={"NEON_API_HOST": control_plane.base_url, "XDG_STATE_HOME": str(folder)},
        programs={"gh": GH},
    )


async def branches(neon: NeonClient, project_id: str) -> dict[str, Branch]:
    return {branch.name: branch async for branch in neon.branches.list(project_id)}


def test_each_job_has_its_own_events() -> None:
    conditions = {name: " ".join(job.condition.split()) for name, job in WORKFLOW.jobs.items()}
    pull = "github.event_name == 'pull_request' && github.event.action"
    own = "github.event.pull_request.head.repo.full_name == github.repository"
    assert conditions == {
        "preview": f"{pull} != 'closed' && {own}",
        "closed": f"{pull} == 'closed' && {own}",
        "nightly": "github.event_name == 'schedule'",
    }


def test_actions_have_the_versions_of_the_own_workflow() -> None:
    own = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    pinned = set(re.findall(r"uses: (\S+@[0-9a-f]{40}) ", own))
    used = {step.uses for job in WORKFLOW.jobs.values() for step in job.steps if step.uses}
    assert used
    assert used <= pinned


def test_no_step_but_those_that_call_neon_has_the_api_key() -> None:
    for job in WORKFLOW.jobs.values():
        for step in job.steps:
            calls = re.search(r"neonctl-async (branches|connection-string) ", step.run or "")
            assert ("NEON_API_KEY" in step.env) == bool(calls)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime.now(UTC))


@pytest.fixture
async def control_plane(clock: ManualClock) -> AsyncIterator[LocalControlPlane]:
    async with LocalControlPlane(clock=clock, durations=Durations(default=0)) as control_plane:
        yield control_plane


@pytest.mark.process
@pytest.mark.scale
async def test_branch_lives_as_long_as_its_pull_request(
    control_plane: LocalControlPlane, neon: NeonClient, tmp_path: Path
) -> None:
    project_id = (await neon.projects.create(name="shop", wait=True)).project.id
    runner = runner_of(control_plane, project_id, tmp_path)

    log = await runner.run("preview", FOLDER, without=DATABASE)
    created = (await branches(neon, project_id))[BRANCH]
    assert created.expires_at is not None
    assert created.expires_at - created.created_at >= timedelta(days=6)
    uri = runner.variables["DATABASE_URL"]
    current = await neon.branches.connection_uri(project_id, created.id)
    assert uri == current.asyncpg
    assert current.password.reveal() in log.text
    assert current.password.reveal() not in log.shown
    assert control_plane.api_key not in log.text
    assert "gh pr comment 7 --repo shop/web --body The database of this pull request" in log.shown
    assert f"`neonctl-async psql {BRANCH}`" in log.shown

    next_push = await runner.run("preview", FOLDER, without=[*DATABASE, CONNECT])
    assert "adopted" in next_push.text
    assert (await branches(neon, project_id))[BRANCH].id == created.id

    assert "deleted" in (await runner.run("closed", FOLDER)).text
    assert BRANCH not in await branches(neon, project_id)


@pytest.mark.process
@pytest.mark.scale
async def test_nightly_job_deletes_forgotten_branches_only(
    control_plane: LocalControlPlane, neon: NeonClient, clock: ManualClock, tmp_path: Path
) -> None:
    project_id = (await neon.projects.create(name="shop", wait=True)).project.id
    for name in ("preview/pr-1", "preview/by-hand", "staging"):
        await neon.branches.create(project_id, name=name)
    clock.advance(8 * 86400)
    for name in ("preview/pr-4", "preview/pr-44", "preview/new"):
        await neon.branches.create(project_id, name=name)
    await runner_of(control_plane, project_id, tmp_path).run("nightly", FOLDER)
    assert set(await branches(neon, project_id)) == {
        *("main", "staging", "preview/pr-44", "preview/new"),
    }


@pytest.mark.postgres
async def test_each_migration_runs_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await asyncio.to_thread(skip_without_postgres)
    monkeypatch.setenv("XDG_CACHE_HOME", CACHE)
    async with databases() as (control_plane, neon):
        project_id = (await neon.projects.create(name="shop", wait=True)).project.id
        runner = runner_of(control_plane, project_id, tmp_path)
        log = await runner.run("preview", FOLDER)
        for line in ("ran 0001_shop.sql", "ran 0002_first_items.sql", "Ran 1 test in", "OK"):
            assert line in log.shown
        log = await runner.run("preview", FOLDER)
        assert "ran 0001_shop.sql" not in log.text
        connection = await asyncpg.connect(runner.variables["DATABASE_URL"])
        assert await connection.fetchval("SELECT count(*) FROM items") == 2
        await connection.close()


@pytest.mark.postgres
async def test_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await asyncio.to_thread(skip_without_postgres)
    monkeypatch.setenv("XDG_CACHE_HOME", CACHE)
    kind = 'console title="The life of a pull request"'
    [(_, block)] = code_blocks(TEXTS["docs/recipes.md"], kind)
    async with databases() as (control_plane, neon):
        runner = runner_of(control_plane, "", tmp_path)
        script = "\n".join(line.removeprefix("$ ") for line in block.splitlines())
        log = await runner.shell(script, FOLDER, {"NEON_API_KEY": control_plane.api_key})
        [project] = await neon.projects.list().collect()
        assert set(await branches(neon, project.id)) == {"main"}
    for line in ("ran 0002_first_items.sql", "Ran 1 test in", "deleted"):
        assert line in log
