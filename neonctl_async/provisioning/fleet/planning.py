"""The decision about each tenant, from lists of the branches and computes. Pure: no I/O."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from neonctl_async._internal import shorten
from neonctl_async.models.branches import Branch
from neonctl_async.models.endpoints import Endpoint, EndpointType
from neonctl_async.models.projects import Project
from neonctl_async.provisioning.differences import (
    changeable_differences,
    differs,
    expires_too_early,
    fixed_differences,
)
from neonctl_async.provisioning.fleet.reports import Action, PlannedTenant
from neonctl_async.provisioning.fleet.tenants import COMPUTE_FIELDS, Tenant, or_unset
from neonctl_async.provisioning.unfinished import unfinished_objects

_TIME: Final = "%Y-%m-%d %H:%M:%S %Z"


class ProjectContent(msgspec.Struct, frozen=True, kw_only=True):
    """The branches of a project, and its computes."""

    project: Project
    branches: Sequence[Branch]
    endpoints: Sequence[Endpoint]


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence for each setting to change, by its name in the API."""

    branch: Mapping[str, str] = {}
    compute: Mapping[str, str] = {}


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """The work on one tenant: the decision, and what else its execution needs."""

    planned: PlannedTenant
    endpoint_id: str | None = None
    """The compute of an existing branch."""
    parent_id: str | None = None
    """The parent branch, if it exists and the tenant names it."""
    changes: Changes = Changes()
    """The differences that an update removes."""
    parent: Tenant | None = None
    """The tenant that is the parent, if it is not done yet."""

    @property
    def tenant(self) -> Tenant:
        """The tenant."""
        return self.planned.tenant

    @property
    def is_done(self) -> bool:
        """True if the branch exists as described, and is ready."""
        return self.planned.is_ready and not self.planned.differences


class ProjectPlan:
    """The decisions about the tenants of one existing project."""

    def __init__(self, content: ProjectContent, tenants: Sequence[Tenant], now: datetime) -> None:
        self._now = now
        self._content = content
        self._tenants = tenants
        self._by_name = {branch.name: branch for branch in content.branches}
        self._by_id = {branch.id: branch for branch in content.branches}
        self._default = next((branch for branch in content.branches if branch.default), None)
        self._computes: dict[str, list[Endpoint]] = {}
        for endpoint in content.endpoints:
            self._computes.setdefault(endpoint.branch_id, []).append(endpoint)

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each tenant whose parent neither exists nor is another tenant."""
        planned = {tenant.branch for tenant in self._tenants}
        for tenant in self._tenants:
            parent = tenant.parent
            if parent is not None and parent not in planned and self._find(parent) is None:
                yield (
                    f"the parent of {tenant} is {shorten(parent)}: expected the name or id of a "
                    f"branch of project {self._content.project.id}"
                )

    def extra(self) -> list[Branch]:
        """Return branches that are not tenants, except default branches and tenants' parents."""
        needed = {tenant.branch for tenant in self._tenants}
        needed |= {tenant.parent for tenant in self._tenants if tenant.parent is not None}
        return [
            branch
            for branch in self._content.branches
            if not branch.default and branch.name not in needed and branch.id not in needed
        ]

    def decide(self, tenant: Tenant) -> Job:
        """Decide what to do about a tenant."""
        fixed = [*_project_differences(tenant, self._content.project)]
        changes = Changes()
        branch = self._by_name.get(tenant.branch)
        computes: list[Endpoint] = []
        if branch is not None:
            fixed += self._fixed_differences(tenant, branch)
            computes = self._read_write(branch) if tenant.compute else []
            if tenant.compute and not computes:
                fixed.append("it has no read_write compute")
            changes = Changes(
                branch=self._changes(tenant, branch),
                compute=_compute_changes(tenant, computes[0]) if computes else {},
            )
        changeable = (*changes.branch.values(), *changes.compute.values())
        planned = PlannedTenant(
            tenant=tenant,
            action=_action(branch, fixed, changeable),
            project_id=self._content.project.id,
            branch=branch,
            is_ready=branch is not None
            and len(computes) == tenant.compute
            and not any(_lacks_name(tenant, compute) for compute in computes)
            and not unfinished_objects(branch, computes),
            differences=(*fixed, *changeable),
        )
        parent = None if tenant.parent is None else self._find(tenant.parent)
        return Job(
            planned=planned,
            endpoint_id=computes[0].id if computes else None,
            parent_id=parent.id if parent else None,
            changes=changes,
        )

    def _fixed_differences(self, tenant: Tenant, branch: Branch) -> list[str]:
        parent = self._default if tenant.parent is None else self._find(tenant.parent)
        if tenant.parent is not None and parent is None:
            # The parent is a tenant that does not exist yet.
            return [f"its parent cannot be {shorten(tenant.parent)}, which does not exist yet"]
        return fixed_differences(branch, parent, tenant.branch_settings, self._by_id)

    def _changes(self, tenant: Tenant, branch: Branch) -> dict[str, str]:
        changes = changeable_differences(branch, tenant.branch_settings)
        if expires_too_early(branch.expires_at, or_unset(tenant.expires_at), self._now):
            changes["expires_at"] = (
                f"it expires at {branch.expires_at:{_TIME}} instead of {tenant.expires_at:{_TIME}}"
            )
        return changes

    def _read_write(self, branch: Branch) -> list[Endpoint]:
        """Return the ``read_write`` compute of a branch, if any. Neon allows only one."""
        computes = self._computes.get(branch.id, [])
        return [one for one in computes if one.type == EndpointType.READ_WRITE][:1]

    def _find(self, text: str) -> Branch | None:
        return self._by_id.get(text) or self._by_name.get(text)


def _action(branch: Branch | None, fixed: Sequence[str], changeable: Sequence[str]) -> Action:
    if fixed:
        return "differ"
    if changeable:
        return "update"
    return "create" if branch is None else "adopt"


def _compute_changes(tenant: Tenant, compute: Endpoint) -> dict[str, str]:
    """Return a sentence for each compute setting that differs, by its name in the API."""
    changes: dict[str, str] = {}
    for name, api_name in COMPUTE_FIELDS.items():
        wanted, found = getattr(tenant, name), getattr(compute, api_name)
        if api_name == "name" and _lacks_name(tenant, compute):
            continue  # every run gives it the name
        if wanted is not None and found != wanted:
            changes[api_name] = f"{differs(name, found, wanted)} (compute {compute.id})"
    return changes


def _lacks_name(tenant: Tenant, compute: Endpoint) -> bool:
    """Return whether a compute still needs its name, which a run sets after creating the branch."""
    return tenant.compute_name is not None and not compute.name


def _project_differences(tenant: Tenant, project: Project) -> Iterator[str]:
    """Yield a sentence for each setting of the project that differs."""
    if tenant.region is not None and tenant.region != project.region_id:
        yield f"the region of its project is {project.region_id!r} instead of {tenant.region!r}"
    if tenant.pg_version is not None and tenant.pg_version != project.pg_version:
        yield f"its project has Postgres {project.pg_version} instead of {tenant.pg_version}"
