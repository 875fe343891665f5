"""Prune a project: read its branches, select some by a policy, delete them."""

from collections.abc import Callable, Coroutine
from datetime import datetime

from msgspec.structs import replace

from neonctl_async.models.branches import Branch, PruneReport
from neonctl_async.models.endpoints import Endpoint
from neonctl_async.provisioning.deletion import Deletions, OnDeleted
from neonctl_async.provisioning.prune_plan import PrunePlan, change_since, make_plan
from neonctl_async.provisioning.prune_policy import PrunePolicy
from neonctl_async.resources.base import CallRunner, check_plain_function
from neonctl_async.resources.branches import BranchCalls
from neonctl_async.resources.endpoints import EndpointCalls
from neonctl_async.waiting.waiter import Wait, wait_options

_PAGE = 1000


async def prune(
    branches: BranchCalls,
    runner: CallRunner,
    project_id: str,
    policy: PrunePolicy,
    *,
    apply: bool,
    report_all: bool,
    on_deleted: OnDeleted | None,
    wait: Wait,
) -> PruneReport:
    """Implement ``branches.prune``."""
    check_plain_function("on_deleted", on_deleted)
    options = wait_options(wait)
    if options is not None and options.connect:
        raise ValueError("cannot wait for connections: a deletion leaves no compute: wait=True")
    pruning = _Prune(
        policy,
        project_id=project_id,
        branches=branches,
        endpoints=EndpointCalls(runner),
        now=runner.waiter.server_now,
    )

    async def finish(report: PruneReport) -> PruneReport:
        if options is None:
            return report
        return await runner.waiter.finish(report, options.timeout, options.on_update)

    planned = await pruning.plan(report_all=report_all)
    return await pruning.apply(planned, on_deleted, finish) if apply else planned


class _Prune:
    """Applies a policy to the branches of a project.

    ``now`` returns the server's time, because a wrong local clock must not cause new branches to be
    deleted.
    """

    def __init__(
        self,
        policy: PrunePolicy,
        *,
        project_id: str,
        branches: BranchCalls,
        endpoints: EndpointCalls,
        now: Callable[[], datetime],
    ) -> None:
        self._policy = policy
        self._project_id = project_id
        self._branches = branches
        self._endpoints = endpoints
        self._now = now

    async def plan(self, *, report_all: bool) -> PruneReport:
        """Return the report of a dry run."""
        listed = self._branches.list(
            self._project_id, limit=_PAGE, sort_by="created_at", sort_order="asc"
        )
        branches = await listed.collect()
        computes = await self._computes()
        now = self._now()
        selected: set[str] = set()
        reasons: dict[str, str] = {}
        for branch in branches:
            judgement = self._policy.judge(branch, computes.get(branch.id, ()), now)
            if judgement.is_selected:
                selected.add(branch.id)
            elif judgement.is_related or report_all:
                reasons[branch.id] = judgement.reason
        plan = make_plan(branches, selected, reasons)
        existing = {text for branch in branches for text in (branch.name, branch.id)}
        missing = {*(self._policy.names or ())} - existing
        return PruneReport(
            applied=False,
            deleted=plan.deleted,
            kept=plan.kept,
            not_found=sorted(missing),
            operations=[],
        )

    async def apply(
        self,
        planned: PruneReport,
        on_deleted: OnDeleted | None,
        finish: Callable[[PruneReport], Coroutine[None, None, PruneReport]],
    ) -> PruneReport:
        """Delete the branches that a dry run selected, except branches that have changed since.

        ``finish`` waits for the operations of the deletions. Every exception gets a note about the
        deletions so far.
        """
        plan = PrunePlan(planned.deleted, planned.kept)
        deletions = Deletions(
            self._branches, plan, prepare=self._reason_to_keep, on_deleted=on_deleted
        )
        try:
            await deletions.run()
            return await finish(
                replace(
                    planned,
                    applied=True,
                    deleted=deletions.deleted,
                    kept=deletions.kept,
                    failed=deletions.failed,
                    operations=deletions.operations,
                )
            )
        except BaseException as error:
            error.add_note(deletions.summary())
            raise

    async def _computes(self) -> dict[str, list[Endpoint]]:
        """Return the computes of each branch, if the policy needs them."""
        by_branch: dict[str, list[Endpoint]] = {}
        if self._policy.idle_for is not None:
            for compute in await self._endpoints.list(self._project_id):
                by_branch.setdefault(compute.branch_id, []).append(compute)
        return by_branch

    async def _reason_to_keep(self, planned: Branch) -> str | None:
        """Read a branch again. Return the reason to keep it after all, or None."""
        current = await self._branches.get(self._project_id, planned.id)
        if reason := change_since(planned, current):
            return reason
        if self._policy.idle_for is None:
            return None
        computes = await self._branches.list_endpoints(self._project_id, planned.id)
        return self._policy.judge(current, computes, self._now()).reason or None
