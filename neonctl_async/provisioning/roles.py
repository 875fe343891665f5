"""The role methods that combine more than one request."""

from msgspec import UNSET, UnsetType

from neonctl_async.errors import MismatchError, NotFoundError
from neonctl_async.models.roles import Role
from neonctl_async.provisioning.attempts import adopt_or_create
from neonctl_async.provisioning.ensured import EnsuredRole
from neonctl_async.provisioning.project_lists import ProjectLists
from neonctl_async.provisioning.readiness import Ensured, wait_until_ready
from neonctl_async.resources.base import check_name
from neonctl_async.resources.roles import Roles
from neonctl_async.waiting.options import Wait, wait_options

_NO_LOGIN = "no_login"


class ProvisionedRoles(Roles):
    """Postgres roles of a branch.

    For ``wait``, see :meth:`neon.branches.create`.
    """

    async def ensure(
        self,
        project_id: str,
        branch_id: str,
        *,
        name: str,
        no_login: bool | UnsetType = UNSET,
        wait: Wait = False,
    ) -> EnsuredRole:
        """Return the role with this name. Create it if it does not exist.

        See :meth:`neon.branches.ensure`. Only a creation returns the password of the role. For an
        adopted role, call :meth:`reveal_password`, or :meth:`reset_password` if the project does
        not store passwords.

        Raises MismatchError if the role exists, but differs from the given ``no_login``. Otherwise,
        raises the errors of :meth:`create`.
        """
        check_name("name", name)
        options = wait_options(wait)

        async def adopt() -> Ensured[EnsuredRole] | None:
            try:
                found = await self.get(project_id, branch_id, name)
            except NotFoundError:
                return None
            differences = _differences(found, no_login=no_login)
            if differences:
                raise MismatchError(
                    f"role {name!r} of branch {branch_id}",
                    existing=found,
                    differences=differences,
                    path=f"/projects/{project_id}/branches/{branch_id}/roles",
                )
            lists = ProjectLists(self._requester, project_id)
            operations = await lists.work_of_object(branch_id, found.created_at)
            adopted = EnsuredRole(role=found, operations=operations, created=False)
            return Ensured(result=adopted, branch_id=branch_id)

        async def create() -> Ensured[EnsuredRole]:
            created = await self.create(project_id, branch_id, name=name, no_login=no_login)
            return Ensured(
                result=EnsuredRole(role=created.role, operations=created.operations, created=True)
            )

        ensured = await adopt_or_create(adopt, create, self._requester.retry)
        return await wait_until_ready(self._requester, project_id, ensured, options)


def _differences(found: Role, *, no_login: bool | UnsetType) -> list[str]:
    """Return the differences that are known: old records have no authentication method."""
    if no_login is UNSET or found.authentication_method is None:
        return []
    is_without_login = found.authentication_method == _NO_LOGIN
    if is_without_login == no_login:
        return []
    return [f"no_login is {is_without_login} instead of {no_login}"]
