"""The database methods that combine more than one request."""

from neonctl_async.errors import MismatchError, NotFoundError
from neonctl_async.provisioning.attempts import adopt_or_create
from neonctl_async.provisioning.ensured import EnsuredDatabase
from neonctl_async.provisioning.project_lists import ProjectLists
from neonctl_async.provisioning.readiness import Ensured, wait_until_ready
from neonctl_async.resources.base import check_name
from neonctl_async.resources.databases import Databases
from neonctl_async.waiting.options import Wait, wait_options


class ProvisionedDatabases(Databases):
    """Databases of a branch. Changes start ``apply_config``.

    For ``wait``, see :meth:`neon.branches.create`.
    """

    async def ensure(
        self, project_id: str, branch_id: str, *, name: str, owner_name: str, wait: Wait = False
    ) -> EnsuredDatabase:
        """Return the database with this name. Create it if it does not exist.

        See :meth:`neon.branches.ensure`. Raises MismatchError if the database exists, but has
        another owner. Otherwise, raises the errors of :meth:`create`.
        """
        check_name("name", name)
        check_name("owner_name", owner_name)
        options = wait_options(wait)

        async def adopt() -> Ensured[EnsuredDatabase] | None:
            try:
                found = await self.get(project_id, branch_id, name)
            except NotFoundError:
                return None
            if found.owner_name != owner_name:
                raise MismatchError(
                    f"database {name!r} of branch {branch_id}",
                    existing=found,
                    differences=[f"its owner is {found.owner_name!r} instead of {owner_name!r}"],
                    path=f"/projects/{project_id}/branches/{branch_id}/databases",
                )
            lists = ProjectLists(self._requester, project_id)
            operations = await lists.work_of_object(branch_id, found.created_at)
            adopted = EnsuredDatabase(database=found, operations=operations, created=False)
            return Ensured(result=adopted, branch_id=branch_id)

        async def create() -> Ensured[EnsuredDatabase]:
            created = await self.create(project_id, branch_id, name=name, owner_name=owner_name)
            return Ensured(
                result=EnsuredDatabase(
                    database=created.database, operations=created.operations, created=True
                )
            )

        ensured = await adopt_or_create(adopt, create, self._requester.retry)
        return await wait_until_ready(self._requester, project_id, ensured, options)
