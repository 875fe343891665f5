"""``branches.ensure``: find the branch and verify it, or create it."""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from neonctl_async.errors import MismatchError, NotFoundError
from neonctl_async.models.branches import Branch, EnsuredBranch, EnsureSettings
from neonctl_async.models.endpoints import Endpoint, EndpointSpec, EndpointType
from neonctl_async.provisioning.creation import adopt_or_create
from neonctl_async.provisioning.differences import (
    changeable_differences,
    expires_too_early,
    fixed_differences,
    match_computes,
)
from neonctl_async.provisioning.project_lists import BranchIndex, ProjectLists
from neonctl_async.provisioning.readiness import Ensured, wait_until_ready
from neonctl_async.resources.base import CallRunner, as_list, check_name
from neonctl_async.resources.branches import BranchCalls
from neonctl_async.resources.names import Wanted
from neonctl_async.transport.encoding import path_segment
from neonctl_async.waiting.waiter import WaitOptions


class BranchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The verified arguments of ``branches.ensure``. Invalid ones raise ValueError or TypeError."""

    project_id: str
    name: str
    parent: str | UnsetType = UNSET
    settings: EnsureSettings

    def __post_init__(self) -> None:
        path_segment("project_id", self.project_id)
        check_name("name", self.name)
        if not isinstance(self.parent, UnsetType):
            check_name("parent", self.parent)
        writers = sum(spec.type == EndpointType.READ_WRITE for spec in self.endpoints)
        if writers > 1:
            raise ValueError(
                f"endpoints has {writers} read_write computes: a branch has at most one"
            )

    @property
    def endpoints(self) -> Sequence[EndpointSpec]:
        """The computes that the branch must have."""
        return as_list("endpoints", self.settings.get("endpoints", ()))


async def ensure_branch(
    branches: BranchCalls,
    runner: CallRunner,
    wanted: BranchRequest,
    options: WaitOptions | None,
) -> EnsuredBranch:
    """Implement ``branches.ensure``."""
    ensured = await _BranchEnsurer(branches, runner, wanted).run()
    return await wait_until_ready(runner, wanted.project_id, ensured, options)


class _BranchEnsurer:
    """Adopts or creates one branch."""

    def __init__(self, branches: BranchCalls, runner: CallRunner, wanted: BranchRequest) -> None:
        self._branches = branches
        self._runner = runner
        self._lists = ProjectLists(runner, wanted.project_id)
        self._wanted = wanted
        self._parent_id: str | UnsetType = UNSET
        """The id of the requested parent, from the latest list; unset for the default branch."""

    async def run(self) -> Ensured[EnsuredBranch]:
        """Adopt or create the branch, and return it."""
        return await adopt_or_create(self._adopt, self._create, self._runner.retry)

    async def _adopt(self) -> Ensured[EnsuredBranch] | None:
        """Return the existing branch. Raise MismatchError if it differs."""
        branch, computes, problems = await self._find()
        if problems:
            # The branch may have been deleted between the requests.
            branch, computes, problems = await self._find()
        if branch is None:
            return None
        if problems:
            raise MismatchError(
                f"branch {branch.name!r} ({branch.id}) of project {self._wanted.project_id}",
                existing=branch,
                differences=problems,
                path=f"/projects/{self._wanted.project_id}/branches",
            )
        extended = await self._extend(branch)
        return None if extended is None else await self._adopted(extended, computes)

    async def _find(self) -> tuple[Branch | None, list[Endpoint], list[str]]:
        """Return the branch with the requested name, its matching computes, and all differences."""
        branches = await self._lists.branches()
        wanted = self._wanted
        parent = self._find_parent(branches)
        found = branches.by_name.get(wanted.name)
        if found is None:
            return None, [], []
        problems = fixed_differences(found, parent, wanted.settings, branches.by_id)
        problems += changeable_differences(found, wanted.settings).values()
        if not wanted.endpoints:
            return found, [], problems
        computes = await self._lists.computes(found.id)
        matching, missing = match_computes(computes, wanted.endpoints)
        return found, matching, problems + missing

    def _find_parent(self, branches: BranchIndex) -> Branch | None:
        """Return the requested parent, by default the default branch."""
        parent = self._wanted.parent
        if isinstance(parent, UnsetType):
            return branches.default
        found = branches.by_id.get(parent) or branches.by_name.get(parent)
        if found is None:
            wanted = Wanted("branch", f"project {self._wanted.project_id}", parent)
            missing = wanted.missing(branches.by_id.values(), "name or the id")
            raise NotFoundError(
                status=404,
                message=f"branch {self._wanted.name!r} needs its parent: {missing}",
                method="POST",
                path=f"/projects/{self._wanted.project_id}/branches",
            )
        self._parent_id = found.id
        return found

    async def _extend(self, branch: Branch) -> Branch | None:
        """Postpone the expiry if the branch expires too early. Return None if it was deleted."""
        now = self._runner.waiter.server_now()
        expires_at = self._wanted.settings.get("expires_at", UNSET)
        if not expires_too_early(branch.expires_at, expires_at, now):
            return branch
        try:
            updated = await self._branches.update(
                branch.project_id, branch.id, expires_at=expires_at
            )
        except NotFoundError:
            return None
        return replace(updated.branch, annotation=branch.annotation)

    async def _adopted(self, branch: Branch, computes: list[Endpoint]) -> Ensured[EnsuredBranch]:
        operations, unexplained = await self._lists.work_on(branch, computes)
        adopted = EnsuredBranch(
            branch=branch, endpoints=computes, operations=operations, created=False
        )
        return Ensured(result=adopted, unexplained=unexplained)

    async def _create(self) -> Ensured[EnsuredBranch]:
        created = await self._branches.create(
            self._wanted.project_id,
            name=self._wanted.name,
            parent_id=self._parent_id,
            **self._wanted.settings,
        )
        return Ensured(
            result=EnsuredBranch(
                branch=created.branch,
                endpoints=created.endpoints,
                operations=created.operations,
                connection_uris=created.connection_uris,
                created=True,
            )
        )
