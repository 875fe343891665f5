"""Clients for tests at Neon, and deletion of the branches that tests left behind."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from neonctl_async.client import NeonClient
from neonctl_async.config import DEFAULT_BASE_URL, RateBudget
from neonctl_async.errors import NeonError
from neonctl_async.models.branches import Branch
from neonctl_async.models.secret import Secret
from neonctl_async.provisioning.deletion import Deletions
from neonctl_async.provisioning.prune_plan import make_plan, with_descendants
from neonctl_async.testing.plugin.background_loop import run_background_loop
from neonctl_async.testing.plugin.naming import (
    PREFIX,
    is_parent,
    lifetime_seconds,
    run_prefix,
)
from neonctl_async.testing.plugin.targets import CloudAccount

SWEEP_SECONDS = 60.0
"""The longest time that the sweep at the end of a run may take."""


def cloud_client(account: CloudAccount, *, parts: int = 1) -> NeonClient:
    """Return a client of the account, whose rate budget all programs of the user share.

    Without a shared budget, the client has one of ``parts`` equal parts.
    """
    base_url = account.base_url or DEFAULT_BASE_URL
    budget = RateBudget.of_user(base_url, fallback_parts=parts)
    if budget.store is None:
        budget = budget.split(parts)
    return NeonClient(Secret(account.api_key), base_url=base_url, budget=budget)


def sweep(account: CloudAccount, run_id: str) -> list[str]:
    """Delete the branches that a test run left behind, and expired ones of other runs.

    Return one line for each branch and each failure.
    """
    with run_background_loop() as loop:
        return loop.call(_sweep(account, run_id))


async def _sweep(account: CloudAccount, run_id: str) -> list[str]:
    lines: list[str] = []
    now = datetime.now(UTC)
    try:
        async with cloud_client(account) as neon, asyncio.timeout(SWEEP_SECONDS):
            deletions = await deletions_of(
                neon, account.project_id, lambda branch: _is_left_behind(branch, run_id, now)
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
    """Plan to delete the unwanted branches of a project and their descendants.

    The deletions include protected branches: a test may have protected a branch.
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
    """Return a line for each branch. A run deletes its own parent only here: it has no line."""
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
