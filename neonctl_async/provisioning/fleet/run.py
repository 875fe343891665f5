"""One run of a fleet: provision the tenants, collect the outcomes."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeAlias

from neonctl_async.errors import AuthenticationError, ClientClosedError, NeonError
from neonctl_async.provisioning.fleet.errors import FleetError
from neonctl_async.provisioning.fleet.plans import FleetPlan, PlannedTenant
from neonctl_async.provisioning.fleet.reports import FleetReport, FleetUpdate, TenantResult
from neonctl_async.provisioning.fleet.steps import TenantSteps
from neonctl_async.provisioning.fleet.tenants import Tenant
from neonctl_async.provisioning.fleet.workers import for_each

OnFleetUpdate: TypeAlias = Callable[[FleetUpdate], object]


class FleetRun:
    """Provisions tenants, a limited number at a time, and collects the outcomes."""

    def __init__(
        self, steps: TenantSteps, plan: FleetPlan, on_update: OnFleetUpdate | None
    ) -> None:
        self._steps = steps
        self._on_update = on_update
        self._total = len(plan.tenants) + len(plan.failed)
        self._succeeded: dict[Tenant, TenantResult] = {}
        self._failed: dict[Tenant, Exception] = {}
        self._skipped: set[Tenant] = set()
        self._is_stopped = False
        self._parents = {
            each.parent: asyncio.Event() for each in plan.tenants if each.parent is not None
        }
        """The tenants that others wait for, because they are the parents."""

    def fail(self, tenant: Tenant, error: Exception) -> None:
        """Record a failure."""
        self._failed[tenant] = error
        self._notify(tenant, None, error)

    def has_failed(self, planned: Sequence[PlannedTenant]) -> bool:
        """Return whether one of these tenants has failed."""
        return any(each.tenant in self._failed for each in planned)

    def skip(self, planned: Sequence[PlannedTenant]) -> None:
        """Record tenants that are not started."""
        self._skipped |= {each.tenant for each in planned}

    async def provision(self, planned: Sequence[PlannedTenant], concurrency: int) -> None:
        """Provision tenants. A tenant must follow the tenant that is its parent.

        Only the errors of the library are collected. An error of ``on_update`` ends the run.
        """
        await for_each(planned, self._provision, concurrency=min(concurrency, len(planned)))

    async def _provision(self, planned: PlannedTenant) -> None:
        tenant = planned.tenant
        result: TenantResult | None = None
        error: Exception | None = None
        try:
            await self._wait_for_parent(planned)
            if self._is_stopped:
                self._skipped.add(tenant)
                return
            result = self._succeeded[tenant] = await self._steps.run(planned)
        except (NeonError, LookupError, ValueError) as caught:
            error = self._failed[tenant] = caught
            if isinstance(caught, AuthenticationError | ClientClosedError):
                self._is_stopped = True
        finally:
            if tenant in self._parents:
                self._parents[tenant].set()
        self._notify(tenant, result, error)

    async def _wait_for_parent(self, planned: PlannedTenant) -> None:
        if planned.parent is None:
            return
        await self._parents[planned.parent].wait()
        if planned.parent in self._failed:
            raise FleetError([f"{planned.tenant} needs its parent {planned.parent}, which failed"])

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
