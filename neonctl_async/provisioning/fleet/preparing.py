"""Plan a fleet: find the projects, read each, and decide what to do for each tenant."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from neonctl_async.errors import AuthenticationError, ClientClosedError, NeonError
from neonctl_async.models.branches import Branch
from neonctl_async.models.projects import NewProject, Project
from neonctl_async.provisioning.fleet.client import FleetClient
from neonctl_async.provisioning.fleet.errors import FleetError
from neonctl_async.provisioning.fleet.planning import Job, ProjectContent, ProjectPlan
from neonctl_async.provisioning.fleet.projects import (
    FleetProjects,
    is_project_id,
    resolve,
)
from neonctl_async.provisioning.fleet.reports import FleetPlan, PlannedTenant
from neonctl_async.provisioning.fleet.tenants import Tenant, or_unset
from neonctl_async.provisioning.fleet.workers import for_each
from neonctl_async.resources.base import checked_expiry
from neonctl_async.resources.branches import MAX_PAGE as MAX_BRANCHES
from neonctl_async.resources.projects import MAX_PAGE as MAX_PROJECTS
from neonctl_async.resources.projects import existing

T = TypeVar("T")

BATCH: Final = 4
"""The maximum number of tenants of one project before the next project has its turn."""
READERS: Final = 20
"""The maximum number of projects that are read at the same time."""


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A plan, and what else a run needs."""

    plan: FleetPlan
    jobs: list[Job]
    """The work on all planned tenants, in the order of a run."""
    new_projects: Mapping[str, NewProject]


async def prepare(neon: FleetClient, tenants: Sequence[Tenant], org_id: str | None) -> Prepared:
    """Make the plan. Sends a request per page of projects, and one or two requests per project.

    Raises FleetError with all problems of the tenants.
    """
    _check_expiries(tenants, neon.server_now())
    wanted = {tenant.project for tenant in tenants}
    found = await read_projects(neon, wanted, org_id) if wanted else []
    resolved = resolve(tenants, found)
    if resolved.problems:
        raise FleetError(resolved.problems)
    groups = _groups(tenants, resolved)
    projects = {project.id: project for project in resolved.existing.values()}
    plans = _Plans(neon)
    await plans.read([(projects[id_], groups[id_]) for id_ in groups if id_ in projects])
    for name in resolved.missing:
        plans.add_new(groups[name])
    return plans.prepared(tenants, resolved.missing)


def _check_expiries(tenants: Sequence[Tenant], now: datetime) -> None:
    """Raise FleetError if Neon would reject the expiry of a tenant."""
    problems: list[str] = []
    for tenant in tenants:
        try:
            checked_expiry(tenant.expires_at, now)
        except ValueError as error:
            problems.append(f"{tenant}: {error}")
    if problems:
        raise FleetError(problems)


def _groups(tenants: Sequence[Tenant], projects: FleetProjects) -> dict[str, list[Tenant]]:
    """Return the tenants of each project, by project id, or by name for a new project.

    Raises FleetError if two tenants describe the same branch of a project.
    """
    groups: dict[str, dict[str, Tenant]] = {}
    problems: list[str] = []
    for tenant in tenants:
        project = projects.existing.get(tenant.project)
        group = groups.setdefault(project.id if project else tenant.project, {})
        other = group.setdefault(tenant.branch, tenant)
        if other is not tenant:
            problems.append(f"{tenant} and {other} are the same branch: expected it once")
    if problems:
        raise FleetError(problems)
    return {key: list(group.values()) for key, group in groups.items()}


class _Plans:
    """The decisions about the tenants of all projects."""

    def __init__(self, neon: FleetClient) -> None:
        self._neon = neon
        self._groups: list[list[Job]] = []
        self._extra: list[Branch] = []
        self._failed: dict[Tenant, NeonError] = {}
        self._problems: list[str] = []

    async def read(self, projects: Sequence[tuple[Project, Sequence[Tenant]]]) -> None:
        """Read existing projects, and plan what to do for their tenants."""

        async def read(group: tuple[Project, Sequence[Tenant]]) -> None:
            project, tenants = group
            try:
                await self._read(project, tenants)
            except (AuthenticationError, ClientClosedError):
                raise
            except NeonError as error:
                self._failed |= dict.fromkeys(tenants, error)

        await for_each(projects, read, concurrency=min(READERS, len(projects)))

    async def _read(self, project: Project, tenants: Sequence[Tenant]) -> None:
        with_computes = any(tenant.compute for tenant in tenants)
        content = await read_content(self._neon, project, with_computes=with_computes)
        plan = ProjectPlan(content, tenants, self._neon.server_now())
        self._problems += plan.problems()
        self._extra += plan.extra()
        self._add([plan.decide(tenant) for tenant in tenants])

    def add_new(self, tenants: Sequence[Tenant]) -> None:
        """Plan the creation of a new project's tenants."""
        self._add(
            [Job(planned=PlannedTenant(tenant=tenant, action="create")) for tenant in tenants]
        )

    def _add(self, jobs: Sequence[Job]) -> None:
        """Add the work on one project, in the order of a run."""
        by_branch = {job.tenant.branch: job for job in jobs}
        try:
            ordered = parents_first([job.tenant for job in jobs])
        except FleetError as error:
            self._problems += error.problems
            return
        group: list[Job] = []
        for tenant in ordered:
            job, parent = by_branch[tenant.branch], by_branch.get(tenant.parent or "")
            if parent is not None and not parent.is_done:
                job = msgspec.structs.replace(job, parent=parent.tenant)
            group.append(job)
        self._groups.append(group)

    def prepared(
        self, tenants: Sequence[Tenant], new_projects: Mapping[str, NewProject]
    ) -> Prepared:
        """Return the plan. Raises FleetError if the tenants have problems."""
        if self._problems:
            raise FleetError(self._problems)
        jobs = list(interleaved(self._groups))
        by_tenant = {job.tenant: job.planned for job in jobs}
        plan = FleetPlan(
            tenants=[by_tenant[tenant] for tenant in tenants if tenant in by_tenant],
            new_projects=list(new_projects),
            extra=self._extra,
            failed={tenant: self._failed[tenant] for tenant in tenants if tenant in self._failed},
        )
        return Prepared(plan=plan, jobs=jobs, new_projects=new_projects)


async def read_projects(
    neon: FleetClient, wanted: AbstractSet[str], org_id: str | None
) -> list[Project]:
    """Return the projects whose id or name is in ``wanted``.

    The list does not contain projects that Neon could not read in time, or projects that are shared
    with the account. Both are read by id, because an existing project must not be created again.
    """
    listed = neon.projects.list(limit=MAX_PROJECTS, org_id=or_unset(org_id))
    found = {one.id: one async for one in listed if {one.id, one.name} & wanted}
    unlisted = {text for text in wanted if is_project_id(text)} | {*listed.unavailable_project_ids}
    for project in await existing(neon.projects, sorted(unlisted - found.keys())):
        if {project.id, project.name} & wanted:
            found[project.id] = project
    return list(found.values())


async def read_content(
    neon: FleetClient, project: Project, *, with_computes: bool
) -> ProjectContent:
    """Return the branches of a project and, if requested, its computes."""
    branches = await neon.branches.list(project.id, limit=MAX_BRANCHES).collect()
    endpoints = await neon.endpoints.list(project.id) if with_computes else []
    return ProjectContent(project=project, branches=branches, endpoints=endpoints)


def parents_first(tenants: Sequence[Tenant]) -> list[Tenant]:
    """Return the tenants of one project, each after the tenant that is its parent.

    Raises FleetError if a tenant is its own ancestor.
    """
    by_branch = {tenant.branch: tenant for tenant in tenants}
    ordered: dict[str, Tenant] = {}
    for tenant in tenants:
        line: dict[str, Tenant] = {}
        ancestor: Tenant | None = tenant
        while ancestor is not None and ancestor.branch not in ordered:
            if ancestor.branch in line:
                raise FleetError([f"the parents of {tenant} form a circle: {' -> '.join(line)}"])
            line[ancestor.branch] = ancestor
            ancestor = by_branch.get(ancestor.parent or "")
        ordered |= reversed(line.items())
    return list(ordered.values())


def interleaved(groups: Iterable[Sequence[T]]) -> Iterator[T]:
    """Yield the first ``BATCH`` items of each group, then the next items of each, and so on.

    The tenants of a batch share the polls of their project. Larger batches would delay each other
    if Neon locks a project while it creates a branch.
    """
    queues = deque(deque(group) for group in groups)
    while queues:
        queue = queues.popleft()
        for _ in range(min(BATCH, len(queue))):
            yield queue.popleft()
        if queue:
            queues.append(queue)
