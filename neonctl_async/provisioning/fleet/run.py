"""One run of a fleet: provision the tenants, collect the outcomes."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from neonctl_async.errors import (
    AuthenticationError,
    ClientClosedError,
    MismatchError,
    NeonError,
)
from neonctl_async.provisioning.fleet.errors import FleetError
from neonctl_async.provisioning.fleet.planning import Job
from neonctl_async.provisioning.fleet.preparing import Prepared
from neonctl_async.provisioning.fleet.reports import (
    FleetPlan,
    FleetReport,
    FleetUpdate,
    TenantResult,
)
from neonctl_async.provisioning.fleet.steps import TenantSteps
from neonctl_async.provisioning.fleet.tenants import Tenant
from neonctl_async.provisioning.fleet.workers import for_each

OnFleetUpdate: TypeAlias = Callable[[FleetUpdate], object]

_ADVICE: Final = {
    "update": "apply the fleet with --update, in Python update=True, which keeps the data",
    "differ": "describe the branch as it is, or use another name",
}


class FleetRun:
    """Provisions tenants, a limited number at a time, and collects the outcomes."""

    def __init__(
        self, steps: TenantSteps, prepared: Prepared, on_update: OnFleetUpdate | None
    ) -> None:
        self._steps = steps
        self._on_update = on_update
        self._total = len(prepared.jobs) + len(prepared.plan.failed)
        self._succeeded: dict[Tenant, TenantResult] = {}
        self._failed: dict[Tenant, Exception] = {}
        self._skipped: set[Tenant] = set()
        self._is_stopped = False
        self._parents = {job.parent: asyncio.Event() for job in prepared.jobs if job.parent}
        """An event for each tenant that is a parent of others, set when the tenant has finished."""

    def start(self, plan: FleetPlan, *, update: bool) -> None:
        """Record the tenants that fail without a request."""
        for tenant, error in plan.failed.items():
            self._fail(tenant, error)
        differing = plan.select("differ") + ([] if update else plan.select("update"))
        for planned in differing:
            error = MismatchError(
                f"branch {planned.tenant}",
                existing=planned.branch,
                differences=planned.differences,
                path=f"/projects/{planned.project_id}/branches",
                advice=_ADVICE[planned.action],
            )
            self._fail(planned.tenant, error)

    def _fail(self, tenant: Tenant, error: Exception) -> None:
        self._failed[tenant] = error
        if tenant in self._parents:
            self._parents[tenant].set()
        self._notify(tenant, None, error)

    def has_failed(self, jobs: Sequence[Job]) -> bool:
        """Return whether one of these tenants has failed."""
        return any(job.tenant in self._failed for job in jobs)

    def skip(self, jobs: Sequence[Job]) -> None:
        """Record the tenants of these jobs as skipped."""
        self._skipped |= {job.tenant for job in jobs}

    async def provision(self, jobs: Sequence[Job], concurrency: int) -> None:
        """Provision tenants. A tenant must follow the tenant that is its parent.

        Only the errors of the library are collected. An exception raised by ``on_update`` ends the
        run.
        """
        await for_each(jobs, self._provision, concurrency=min(concurrency, len(jobs)))

    async def _provision(self, job: Job) -> None:
        result: TenantResult | None = None
        error: Exception | None = None
        try:
            parent_id = await self._parent_id(job)
            if self._is_stopped:
                self._skipped.add(job.tenant)
                return
            result = await self._steps.run(job, parent_id)
            self._succeeded[job.tenant] = result
        except (NeonError, ValueError) as caught:
            error = self._failed[job.tenant] = caught
            if isinstance(caught, AuthenticationError | ClientClosedError):
                self._is_stopped = True
        finally:
            if job.tenant in self._parents:
                self._parents[job.tenant].set()
        self._notify(job.tenant, result, error)

    async def _parent_id(self, job: Job) -> str | None:
        """Return the id of the parent once it exists. Raise FleetError if the parent failed."""
        if job.parent is None:
            return job.parent_id
        await self._parents[job.parent].wait()
        if job.parent in self._succeeded:
            return self._succeeded[job.parent].branch_id
        if not self._is_stopped:
            raise FleetError([f"{job.tenant} needs its parent {job.parent}, which failed"])
        return None

    def _notify(self, tenant: Tenant, result: TenantResult | None, error: Exception | None) -> None:
        if self._on_update is not None:
            finished = len(self._succeeded) + len(self._failed)
            self._on_update(
                FleetUpdate(
                    tenant=tenant,
                    result=result,
                    error=error,
                    finished=finished,
                    total=self._total,
                )
            )

    def report(self, tenants: Sequence[Tenant]) -> FleetReport:
        """Return the outcomes, in the order of ``tenants``."""
        return FleetReport(
            succeeded={each: self._succeeded[each] for each in tenants if each in self._succeeded},
            failed={each: self._failed[each] for each in tenants if each in self._failed},
            skipped=[each for each in tenants if each in self._skipped],
        )
