"""Clients for tests at Neon, and deletion of the branches that tests left behind."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from neonctl_async.client import NeonClient
from neonctl_async.config import DEFAULT_BASE_URL
from neonctl_async.errors import NeonError
from neonctl_async.models.branches import Branch
from neonctl_async.models.secret import Secret
from neonctl_async.testing.plugin.background_loop import run_background_loop
from neonctl_async.testing.plugin.naming import (
    LIFETIME_SECONDS,
    PARENT_LIFETIME_SECONDS,
    PREFIX,
    is_parent,
    run_prefix,
)
from neonctl_async.transport.shared.defaults import default_budget

if TYPE_CHECKING:
    from pytest_neonctl_async.targets import CloudAccount

SWEEP_SECONDS = 60.0
"""The longest time that the sweep at the end of a run may take."""


def cloud_client(account: "CloudAccount", *, shares: int = 1) -> NeonClient:
    """Return a client of the account, whose rate budget all programs of the user share.

    Without a shared budget, the client has one of ``shares`` equal shares.
    """
    base_url = account.base_url or DEFAULT_BASE_URL
    budget = default_budget(os.environ, base_url, fallback_parts=shares)
    if budget.store is None:
        budget = budget.split(shares)
    return NeonClient(Secret(account.api_key), base_url=base_url, budget=budget)


def sweep(account: "CloudAccount", run_id: str) -> list[str]:
    """Delete the branches that a test run left behind, and expired ones of other runs.

    Return one line for each branch and each failure.
    """
    with run_background_loop() as loop:
        return loop.call(_sweep(account, run_id))


async def _sweep(account: "CloudAccount", run_id: str) -> list[str]:
    lines: list[str] = []
    now = datetime.now(UTC)
    try:
        async with cloud_client(account) as neon, asyncio.timeout(SWEEP_SECONDS):
            async for branch, error in delete_branches(
                neon, account.project_id, lambda branch: _is_left_behind(branch, run_id, now)
            ):
                # A run deletes the parent of its branches only here: it was not left behind.
                if error is not None or not _is_parent_of(branch, run_id):
                    lines.append(_line(branch, error))
    except NeonError as error:
        lines.append(f"could not list the branches that test runs left behind: {error}")
    except TimeoutError:
        lines.append(f"the sweep stopped after {SWEEP_SECONDS:g} s: branches may be left behind")
    return lines


async def delete_branches(
    neon: NeonClient, project_id: str, is_unwanted: Callable[[Branch], bool]
) -> AsyncGenerator[tuple[Branch, NeonError | None]]:
    """Delete unwanted branches of a project and their descendants, even protected ones.

    Yield each branch, with the error if it could not be deleted.
    """
    branches = await neon.branches.list(project_id, limit=1000).collect()
    for branch in _with_descendants(branches, is_unwanted):
        failure: NeonError | None = None
        try:
            if branch.protected:
                await neon.branches.update(project_id, branch.id, protected=False, wait=True)
            await neon.branches.delete(project_id, branch.id)
        except NeonError as error:
            failure = error
        yield branch, failure


def _with_descendants(
    branches: Sequence[Branch], is_unwanted: Callable[[Branch], bool]
) -> list[Branch]:
    """Return the unwanted branches and their descendants, children before their parents."""
    children: dict[str | None, list[Branch]] = {}
    for branch in branches:
        children.setdefault(branch.parent_id, []).append(branch)
    ordered: dict[str, Branch] = {}

    def add(branch: Branch) -> None:
        for child in children.get(branch.id, ()):
            add(child)
        ordered.setdefault(branch.id, branch)

    for branch in filter(is_unwanted, branches):
        add(branch)
    return list(ordered.values())


def _is_left_behind(branch: Branch, run_id: str, now: datetime) -> bool:
    if not branch.name.startswith(PREFIX):
        return False
    # A test run may need its parent branch for longer than one test needs a branch.
    lifetime = PARENT_LIFETIME_SECONDS if is_parent(branch.name) else LIFETIME_SECONDS
    is_expired = now - branch.created_at > timedelta(seconds=lifetime)
    return is_expired or branch.name.startswith(run_prefix(run_id))


def _is_parent_of(branch: Branch, run_id: str) -> bool:
    return is_parent(branch.name) and branch.name.startswith(run_prefix(run_id))


def _line(branch: Branch, error: NeonError | None) -> str:
    if error is None:
        return f"deleted branch {branch.name} ({branch.id}), which a test run left behind"
    return f"could not delete branch {branch.name} ({branch.id}) of a test run: {error}"
