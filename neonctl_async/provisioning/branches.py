"""``neon.branches``: the calls, and methods that combine them."""

from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Unpack

from msgspec import UNSET, UnsetType

from neonctl_async.models.branches import (
    Branch,
    BranchCreated,
    EnsuredBranch,
    EnsureSettings,
    EphemeralSettings,
    PruneReport,
)
from neonctl_async.models.endpoints import EndpointSpec
from neonctl_async.provisioning.ensured_branches import BranchRequest, ensure_branch
from neonctl_async.provisioning.ephemeral import EphemeralBranch, created_then_deleted
from neonctl_async.provisioning.prune import prune
from neonctl_async.provisioning.prune_policy import PrunePolicy
from neonctl_async.resources.base import check_settings, checked_expiry, checked_wait
from neonctl_async.resources.branches import NO_ENDPOINTS, BranchCalls
from neonctl_async.waiting.waiter import DEFAULT_TIMEOUT, Wait, WaitOptions


class Branches(BranchCalls):
    """Branches: the calls of the API, and methods that combine them."""

    def ephemeral(
        self,
        project_id: str,
        *,
        name: str | UnsetType = UNSET,
        name_prefix: str = "ephemeral",
        ttl_seconds: int | None = 3600,
        keep_on_error: bool = False,
        timeout: float | None = DEFAULT_TIMEOUT,
        connect: bool = False,
        **settings: Unpack[EphemeralSettings],
    ) -> AbstractAsyncContextManager[BranchCreated]:
        """Create a branch for an ``async with`` block, and delete it on exit.

        Creates the branch as :meth:`create` does and waits until it is ready. By default the branch
        has a read-write compute, and the block can connect to its ``connection_uri``. The branch is
        deleted even after an error or a cancellation; the deletion takes at most 30 seconds.

        - ``name``: the name of the branch. By default, a generated name that starts with
          ``name_prefix``. If the response to the creation is lost, the client searches for the
          generated name and deletes the branch. It does not search for a name that you chose.
        - ``endpoints``: the computes of the branch, by default a ``read_write`` compute.
        - ``ttl_seconds``: Neon deletes the branch this many seconds after its creation, even if the
          process is killed. 1 to 2,592,000, which is 30 days; None for accounts whose branches
          cannot expire.
        - ``keep_on_error``: True to leave the branch for inspection if the block raises an
          exception. A cancellation still deletes it.
        - ``timeout``: how long to wait until the branch is ready, in seconds; None for no limit.
        - ``connect``: also wait until the computes accept connections, within the same time.

        Raises the errors of the creation and of the wait. If the deletion fails, its error
        (TimeoutError after 30 seconds) is raised, or added as a note if the block has already
        raised an error.
        """
        check_settings(EphemeralSettings, settings)
        endpoints = settings.setdefault("endpoints", [EndpointSpec(type="read_write")])
        if connect and not endpoints:
            raise ValueError(f"connect=True requires a connection, but {NO_ENDPOINTS}")
        branch = EphemeralBranch(
            self,
            project_id,
            settings,
            name=name,
            name_prefix=name_prefix,
            ttl_seconds=ttl_seconds,
            now=self._runner.waiter.server_now,
        )
        options = WaitOptions(timeout=timeout, connect=connect)
        return created_then_deleted(branch, self._runner, options, keep_on_error=keep_on_error)

    async def ensure(
        self,
        project_id: str,
        *,
        name: str,
        parent: str | UnsetType = UNSET,
        wait: Wait = False,
        **settings: Unpack[EnsureSettings],
    ) -> EnsuredBranch:
        """Return the branch with this name. Create it if it does not exist.

        The result's ``created`` reports which of the two happened. Any number of processes may
        ensure the same branch at the same time, and repeat a call whose response was lost.

        ``parent`` is the name or the id of the parent branch, by default the default branch. The
        other settings are those of :meth:`create`. The call verifies that an existing branch meets
        these conditions:

        - It is a child of ``parent``, and not the default branch.
        - It has the given ``protected``, and the given or default ``init_source``.
        - It has a compute with the given settings for each item of ``endpoints``. Further computes
          do not matter.
        - It expires if ``expires_at`` is given. If it would expire much earlier, the call postpones
          its expiry to ``expires_at``. The call changes nothing else.

        ``annotation_value`` is only written when the branch is created. With ``wait``, the call
        returns when the branch and the given computes are ready, even if another process is
        creating them.

        Raises MismatchError if the branch exists but differs, NotFoundError if the parent does not
        exist, and otherwise the errors of :meth:`create`.
        """
        check_settings(EnsureSettings, settings)
        if "expires_at" in settings:
            now = self._runner.waiter.server_now()
            settings["expires_at"] = checked_expiry(settings["expires_at"], now)
        no_compute = "" if settings.get("endpoints") else NO_ENDPOINTS
        options = checked_wait(wait, no_compute=no_compute)
        wanted = BranchRequest(project_id=project_id, name=name, parent=parent, settings=settings)
        return await ensure_branch(self, self._runner, wanted, options)

    async def prune(
        self,
        project_id: str,
        *,
        name_prefix: str | None = None,
        pattern: str | None = None,
        names: Collection[str] | None = None,
        older_than: timedelta | None = None,
        idle_for: timedelta | None = None,
        apply: bool = False,
        report_all: bool = False,
        on_deleted: Callable[[Branch], object] | None = None,
        wait: Wait = False,
    ) -> PruneReport:
        """Delete the branches that meet all given criteria; by default, only report them.

        - ``name_prefix``: the start of the name.
        - ``pattern``: a pattern for the whole name, such as ``preview/pr-*``. ``*`` matches any
          text, ``?`` one character, and ``[…]`` one of the characters in the brackets.
        - ``names``: the exact names, or the ids. An empty list does not select any branch.
        - ``older_than``: the minimum age of the branch.
        - ``idle_for``: the minimum time since the branch was created, changed or reset, or one of
          its computes was active. A branch with a running compute is not idle.
        - ``apply``: False for a dry run, which deletes nothing.
        - ``report_all``: report every branch that is kept, even if its name does not match.
        - ``on_deleted``: a plain function that is called with each deleted branch.
        - ``wait``: with ``apply``, wait for the operations of all deletions; see :meth:`create`.

        Default, protected and root branches are kept, and so is the parent of every kept branch.
        Ages are measured by the server's clock. Children are deleted before their parents. Each
        branch is read again before it is deleted, and kept if it has changed in the meantime.

        A deletion that fails does not stop the others; the report lists it. If the call is
        cancelled, a note on the CancelledError lists the deletions so far. Deleted branches can be
        recovered for seven days.

        Raises ValueError if no criterion is given.
        """
        policy = PrunePolicy(
            name_prefix=name_prefix,
            pattern=pattern,
            names=names,
            older_than=older_than,
            idle_for=idle_for,
        )
        return await prune(
            self,
            self._runner,
            project_id,
            policy,
            apply=apply,
            report_all=report_all,
            on_deleted=on_deleted,
            wait=wait,
        )
