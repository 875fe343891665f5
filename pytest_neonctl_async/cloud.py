"""Tests against Neon: the account, the backend, and the deletion of branches left by tests."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from uuid import uuid4

from neonctl_async import EndpointSpec, NeonClient, NeonError, RateBudget, Secret
from neonctl_async.config import DEFAULT_BASE_URL
from neonctl_async.provisioning.deletion import Deletions
from neonctl_async.provisioning.prune_plan import make_plan, with_descendants
from neonctl_async.types import Branch, BranchCreated, Project
from pytest_neonctl_async.backend import Backend, BranchFactory
from pytest_neonctl_async.background_loop import BackgroundLoop, run_background_loop
from pytest_neonctl_async.migrations import Preparation, migrate_database
from pytest_neonctl_async.naming import (
    PREFIX,
    RUN_LIFETIME_SECONDS,
    is_parent,
    lifetime_seconds,
    parent_prefix,
    run_prefix,
    shared_prefix,
    worker_prefix,
)
from pytest_neonctl_async.once import Outcome

SWEEP_SECONDS: Final = 60.0
"""The longest time that the sweep at the end of a run may take."""
_CLIENTS_PER_PROCESS: Final = 2
"""The client of the fixtures and the client of the current test, which share the rate budget."""


class CloudAccount:
    """A Neon account and the project of the tests, read from the environment once.

    ``base_url`` is None if ``NEON_API_HOST`` is not set. The repr hides the key. Raise ValueError
    if ``NEON_API_KEY`` or ``NEON_PROJECT_ID`` is missing.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        required = ("NEON_API_KEY", "NEON_PROJECT_ID")
        missing = [name for name in required if not environment.get(name)]
        if missing:
            raise ValueError(f"--neon-cloud needs {' and '.join(missing)} to be set")
        self.api_key: str = environment["NEON_API_KEY"]
        self.project_id: str = environment["NEON_PROJECT_ID"]
        self.base_url: str | None = environment.get("NEON_API_HOST") or None


@dataclass(frozen=True, repr=False)
class CloudBackend(Backend):
    """A project on Neon, which all tests share."""

    shared_project: Project
    migrated_id: str | None = None

    @property
    def parent_id(self) -> str | None:
        """The branch of the migrations, or None for the default branch of the project."""
        return self.migrated_id

    def project(self) -> Project:
        """Return the shared project."""
        return self.shared_project

    @contextmanager
    def shared_branch(self, *, until_end: bool = False) -> Generator[BranchCreated, None, None]:
        """Create a branch that exists for up to a day."""
        del until_end  # always delete the branch, because Neon would keep it
        project_id = self.project().id
        ephemeral = partial(
            self._ephemeral(project_id),
            name_prefix=shared_prefix(self.prefix),
            ttl_seconds=RUN_LIFETIME_SECONDS,
        )
        factory = self._factory(project_id, ephemeral)
        try:
            yield factory.create()
        finally:
            self._delete_all(factory)

    def reset(self) -> None:
        """Do nothing: the project is shared, and the factory deletes the branches of the test."""

    def _delete_all(self, factory: BranchFactory) -> None:
        try:
            factory.delete_all()
        except NeonError as error:
            # The test may have protected the branches, or created children of them.
            left = self.loop.call(self._delete_with_descendants(factory.branch_ids))
            if left:
                error.add_note("; ".join(left))
                raise

    async def _delete_with_descendants(self, branch_ids: list[str]) -> list[str]:
        """Delete branches and their descendants. Return a message for each branch that is left."""
        deletions = await deletions_of(
            self.neon, self.shared_project.id, lambda branch: branch.id in branch_ids
        )
        await deletions.run()
        kept = [f"{one.branch.name} is kept: {one.reason}" for one in deletions.kept]
        return kept + [f"{one.branch.name} is left: {one.error}" for one in deletions.failed]


@contextmanager
def open_cloud(
    account: CloudAccount, run_id: str, preparation: Preparation
) -> Generator[Backend, None, None]:
    """Open a backend that uses the project of ``account``.

    With migrations, new branches are children of a branch that this test run migrates. Raise
    RuntimeError if the migrations failed.
    """
    with (
        run_background_loop() as loop,
        loop.enter(_cloud_backend(loop, account, worker_prefix(run_id))) as backend,
    ):
        yield _with_parent(backend, preparation, run_id)


@asynccontextmanager
async def _cloud_backend(
    loop: BackgroundLoop, account: CloudAccount, prefix: str
) -> AsyncGenerator[CloudBackend]:
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    new_client = partial(cloud_client, account, parts=_CLIENTS_PER_PROCESS * workers)
    async with new_client() as neon:
        project = await neon.projects.get(account.project_id)
        yield CloudBackend(loop, neon, new_client, prefix, project)


def _with_parent(cloud: CloudBackend, preparation: Preparation, run_id: str) -> CloudBackend:
    """Return the backend with the branch of the migrations as the parent of new branches."""
    if preparation.migrate is None:
        return cloud
    migrate = preparation.migrate

    def step() -> Outcome:
        created = cloud.loop.call(_create_parent(cloud, run_id))
        migrate_database(migrate, created.connection_uri)
        return Outcome(created.branch.id)

    return replace(cloud, migrated_id=preparation.run_once(step))


async def _create_parent(cloud: CloudBackend, run_id: str) -> BranchCreated:
    # It does not expire, because Neon lets no branch with children expire. The sweep deletes it.
    return await cloud.neon.branches.create(
        cloud.shared_project.id,
        name=f"{parent_prefix(run_id)}{uuid4().hex[:12]}",
        endpoints=[EndpointSpec(type="read_write")],
        wait=True,
    )


def cloud_client(account: CloudAccount, *, parts: int = 1) -> NeonClient:
    """Return a client of the account that shares its rate budget with the user's other programs.

    Without a shared budget, the client gets one of ``parts`` equal parts of the limits.
    """
    base_url = account.base_url or DEFAULT_BASE_URL
    budget = RateBudget.of_user(base_url, fallback_parts=parts)
    if budget.store is None:
        budget = budget.split(parts)
    return NeonClient(Secret(account.api_key), base_url=base_url, budget=budget)


def sweep(account: CloudAccount, run_id: str) -> list[str]:
    """Delete the branches that a test run left behind, and expired branches of other runs.

    Return one line for each branch and each failure.
    """
    with run_background_loop() as loop:
        return loop.call(_sweep(account, run_id))


async def _sweep(account: CloudAccount, run_id: str) -> list[str]:
    lines: list[str] = []
    try:
        async with cloud_client(account) as neon, asyncio.timeout(SWEEP_SECONDS):
            deletions = await deletions_of(
                neon,
                account.project_id,
                lambda branch: _is_left_behind(branch, run_id, neon.server_now()),
            )
            try:
                await deletions.run()
            finally:
                lines += _lines(deletions, run_id)
    except NeonError as error:
        lines.append(f"could not list the branches that test runs left behind: {error}")
    except TimeoutError:
        lines.append(f"the sweep stopped after {SWEEP_SECONDS:g} s: branches may be left behind")
    return lines


async def deletions_of(
    neon: NeonClient, project_id: str, is_unwanted: Callable[[Branch], bool]
) -> Deletions:
    """Plan the deletion of a project's unwanted branches and their descendants.

    The deletions include protected branches, because a test may have protected a branch.
    """
    branches = await neon.branches.list(project_id, limit=1000).collect()
    unwanted = with_descendants(branches, (one.id for one in branches if is_unwanted(one)))

    async def unprotect(branch: Branch) -> None:
        if branch.protected:
            await neon.branches.update(project_id, branch.id, protected=False, wait=True)

    plan = make_plan(branches, unwanted, {}, protected=True)
    return Deletions(neon.branches, plan, prepare=unprotect)


def _is_left_behind(branch: Branch, run_id: str, now: datetime) -> bool:
    if not branch.name.startswith(PREFIX):
        return False
    is_expired = now - branch.created_at > timedelta(seconds=lifetime_seconds(branch.name))
    return is_expired or branch.name.startswith(run_prefix(run_id))


def _is_parent_of(branch: Branch, run_id: str) -> bool:
    return is_parent(branch.name) and branch.name.startswith(run_prefix(run_id))


def _lines(deletions: Deletions, run_id: str) -> list[str]:
    """Return a line for each branch except the run's own parent if it was deleted as expected."""
    deleted = [branch for branch in deletions.deleted if not _is_parent_of(branch, run_id)]
    left = [(kept.branch, kept.reason) for kept in deletions.kept]
    left += [(failure.branch, failure.error) for failure in deletions.failed]
    return [
        f"deleted branch {branch.name} ({branch.id}), which a test run left behind"
        for branch in deleted
    ] + [
        f"could not delete branch {branch.name} ({branch.id}) of a test run: {reason}"
        for branch, reason in left
    ]
