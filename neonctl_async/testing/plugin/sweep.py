"""Clearing away what tests have left on the platform."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from neonctl_async.client import NeonClient
from neonctl_async.errors import NeonError
from neonctl_async.models.branches import Branch
from neonctl_async.testing.plugin.addresses import CloudAccount, cloud_client
from neonctl_async.testing.plugin.background_loop import run_background_loop
from neonctl_async.testing.plugin.naming import LIFETIME_SECONDS, PREFIX, prefix_of_run

SWEEP_SECONDS = 60.0
"""How long the end of a run may take."""


def sweep_now(platform: CloudAccount, run: str) -> list[str]:
    """Delete the branches that a test run has left behind; a line for each, and each failure.

    So are those of other runs that should have expired.
    """
    with run_background_loop() as background_loop:
        return background_loop.call(_sweep(platform, run))


async def _sweep(platform: CloudAccount, run: str) -> list[str]:
    told: list[str] = []
    now = datetime.now(UTC)
    try:
        async with cloud_client(platform) as neon, asyncio.timeout(SWEEP_SECONDS):
            await clear_away(
                neon,
                platform.project_id,
                lambda branch: _is_left_behind(branch, run, now),
                lambda branch, error: told.append(_told(branch, error)),
            )
    except NeonError as error:
        told.append(f"could not look for branches that were left behind: {error}")
    except TimeoutError:
        told.append(f"the sweep ended after {SWEEP_SECONDS:g} s: there may be more left behind")
    return told


async def clear_away(
    neon: NeonClient,
    project_id: str,
    is_unwanted: Callable[[Branch], bool],
    tell: Callable[[Branch, NeonError | None], object],
) -> None:
    """Delete unwanted branches of a project with all that came of them, protected or not.

    ``tell`` is called with each, and with what kept it from being deleted.
    """
    found = await neon.branches.list(project_id, limit=1000).collect()
    for branch in _with_descendants(found, is_unwanted):
        try:
            if branch.protected:
                await neon.branches.update(project_id, branch.id, protected=False, wait=True)
            await neon.branches.delete(project_id, branch.id)
        except NeonError as error:
            tell(branch, error)
        else:
            tell(branch, None)


def _with_descendants(
    found: Sequence[Branch], is_unwanted: Callable[[Branch], bool]
) -> list[Branch]:
    """The unwanted ones, children before their parents."""
    children: dict[str | None, list[Branch]] = {}
    for branch in found:
        children.setdefault(branch.parent_id, []).append(branch)
    ordered: dict[str, Branch] = {}

    def add(branch: Branch) -> None:
        for child in children.get(branch.id, ()):
            add(child)
        ordered.setdefault(branch.id, branch)

    for branch in filter(is_unwanted, found):
        add(branch)
    return list(ordered.values())


def _is_left_behind(branch: Branch, run: str, now: datetime) -> bool:
    if not branch.name.startswith(PREFIX):
        return False
    is_over = now - branch.created_at > timedelta(seconds=LIFETIME_SECONDS)
    return is_over or branch.name.startswith(prefix_of_run(run))


def _told(branch: Branch, error: NeonError | None) -> str:
    if error is None:
        return f"deleted branch {branch.name} ({branch.id}), which was left behind"
    return f"branch {branch.name} ({branch.id}) was left behind: {error}"
