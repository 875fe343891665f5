"""Fleet: tenants that should exist, the plan for them, and the run that creates them."""

import sys
from collections.abc import Iterable

from neonctl_async.provisioning.fleet.client import FleetClient
from neonctl_async.provisioning.fleet.errors import FleetError
from neonctl_async.provisioning.fleet.new_projects import NewProjects
from neonctl_async.provisioning.fleet.preparing import prepare
from neonctl_async.provisioning.fleet.reports import FleetPlan, FleetReport
from neonctl_async.provisioning.fleet.run import FleetRun, OnFleetUpdate
from neonctl_async.provisioning.fleet.steps import StepOptions, TenantSteps
from neonctl_async.provisioning.fleet.tenants import Tenant
from neonctl_async.resources.base import check_plain_function, check_within
from neonctl_async.waiting.waiter import Wait, wait_options


class Fleet:
    """A list of tenants: branches that should exist in any number of projects.

    ``neon`` is a :class:`neonctl_async.NeonClient`. Its rate budget limits the requests. With
    ``org_id``, projects are searched for and created in this organization. Raises FleetError if two
    tenants describe the same branch.
    """

    def __init__(
        self, neon: FleetClient, tenants: Iterable[Tenant], *, org_id: str | None = None
    ) -> None:
        self._neon = neon
        self._org_id = org_id
        self._tenants = list(tenants)
        seen: set[tuple[str, str]] = set()
        problems: list[str] = []
        for tenant in self._tenants:
            if (key := (tenant.project, tenant.branch)) in seen:
                problems.append(f"{tenant} is in the fleet twice: expected it once")
            seen.add(key)
        if problems:
            raise FleetError(problems)

    async def plan(self) -> FleetPlan:
        """Compare the tenants with the existing branches. Changes nothing.

        Sends one request per 400 projects of the account, and one or two requests per project of
        the fleet: one lists the branches and, if a tenant has a compute, one lists the computes.
        Raises FleetError, with all problems, if a parent or a project does not exist, or if a name
        belongs to more than one project. A project may be missing if a tenant gives its region.
        """
        return (await prepare(self._neon, self._tenants, self._org_id)).plan

    async def apply(
        self,
        *,
        canary: int = 0,
        concurrency: int = 100,
        wait: Wait = True,
        uris: bool = True,
        pooled: bool = False,
        update: bool = False,
        on_update: OnFleetUpdate | None = None,
    ) -> FleetReport:
        """Create the missing branches, and wait until all are ready.

        Makes a plan first. Adopts what exists, so you can run the fleet again after a failure or a
        ``kill -9``. Never deletes anything. A branch that differs counts as a failure, unless
        ``update`` is set and all differences can be removed in place.

        - ``canary``: the number of unfinished tenants to finish before all others. If one of them
          fails, the others are not started. A tenant that differs does not count as a canary.
        - ``concurrency``: the number of tenants in progress at the same time.
        - ``wait``: as for :meth:`neon.branches.create`. With ``"connect"``, a tenant is done when
          its compute accepts connections; with ``False``, when its branch exists.
        - ``uris``: return a connection URI for each tenant with a compute; ``pooled`` selects the
          URI of the pooler. A branch that already existed costs up to two more requests.
        - ``update``: change the protection and the expiry of existing branches, and the size,
          the suspend timeout and the name of their computes. Other differences remain failures.
        - ``on_update``: a plain function that is called with the outcome of each tenant.

        Missing projects are created one after another. If there are any, run only one process at a
        time, because Neon accepts two projects with the same name. Raises the errors of
        :meth:`plan` before anything is created. Failures of tenants are in the report.
        """
        check_within("canary", canary, 0, sys.maxsize)
        check_within("concurrency", concurrency, 1, sys.maxsize)
        check_plain_function("on_update", on_update)
        options = StepOptions(wait=wait_options(wait), uris=uris, pooled=pooled)
        prepared = await prepare(self._neon, self._tenants, self._org_id)
        new_projects = NewProjects(self._neon, prepared.new_projects, self._org_id)
        run = FleetRun(TenantSteps(self._neon, new_projects, options), prepared, on_update)
        run.start(prepared.plan, update=update)
        failing = {"differ"} if update else {"differ", "update"}
        jobs = [job for job in prepared.jobs if job.planned.action not in failing]
        first = [job for job in jobs if not job.is_done][:canary]
        canaries = {job.tenant for job in first}
        rest = [job for job in jobs if job.tenant not in canaries]
        await run.provision(first, concurrency)
        if run.has_failed(first):
            run.skip(rest)
        else:
            await run.provision(rest, concurrency)
        return run.report(self._tenants)
