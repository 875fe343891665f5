"""``neon.databases``, ``neon.roles`` and ``neon.endpoints``: the calls, and ``ensure``."""

from collections.abc import Mapping
from functools import partial
from typing import Final, Unpack

from msgspec import UNSET, UnsetType

from neonctl_async.errors import MismatchError, NotFoundError
from neonctl_async.models.databases import EnsuredDatabase
from neonctl_async.models.endpoints import (
    ComputeSettings,
    EndpointType,
    EndpointTypeName,
    EnsuredEndpoint,
)
from neonctl_async.models.roles import EnsuredRole, Role
from neonctl_async.provisioning.creation import adopt_or_create
from neonctl_async.provisioning.differences import compute_differences
from neonctl_async.provisioning.project_lists import ProjectLists
from neonctl_async.provisioning.readiness import Ensured, wait_until_ready
from neonctl_async.resources.base import check_name, check_settings, checked_wait
from neonctl_async.resources.databases import DatabaseCalls
from neonctl_async.resources.endpoints import EndpointCalls, no_compute_with
from neonctl_async.resources.roles import RoleCalls
from neonctl_async.transport.encoding import path_segment
from neonctl_async.waiting.waiter import Wait, wait_options

_NO_LOGIN: Final = "no_login"


class Databases(DatabaseCalls):
    """Databases of a branch. Changes start ``apply_config`` operations.

    For ``wait``, see :meth:`neon.branches.create`.
    """

    async def ensure(
        self, project_id: str, branch_id: str, *, name: str, owner_name: str, wait: Wait = False
    ) -> EnsuredDatabase:
        """Return the database with this name. Create it if it does not exist.

        See :meth:`neon.branches.ensure`. Raises MismatchError if the database exists but has
        another owner, and otherwise the errors of :meth:`create`.
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
            lists = ProjectLists(self._runner, project_id)
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

        ensured = await adopt_or_create(adopt, create, self._runner.retry)
        return await wait_until_ready(self._runner, project_id, ensured, options)


class Roles(RoleCalls):
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

        See :meth:`neon.branches.ensure`. The result contains the password only if the call created
        the role. For an adopted role, call :meth:`reveal_password`, or :meth:`reset_password` if
        the project does not store passwords.

        Raises MismatchError if the role exists but differs from the given ``no_login``, and
        otherwise the errors of :meth:`create`.
        """
        check_name("name", name)
        options = wait_options(wait)

        async def adopt() -> Ensured[EnsuredRole] | None:
            try:
                found = await self.get(project_id, branch_id, name)
            except NotFoundError:
                return None
            differences = _role_differences(found, no_login=no_login)
            if differences:
                raise MismatchError(
                    f"role {name!r} of branch {branch_id}",
                    existing=found,
                    differences=differences,
                    path=f"/projects/{project_id}/branches/{branch_id}/roles",
                )
            lists = ProjectLists(self._runner, project_id)
            operations = await lists.work_of_object(branch_id, found.created_at)
            adopted = EnsuredRole(role=found, operations=operations, created=False)
            return Ensured(result=adopted, branch_id=branch_id)

        async def create() -> Ensured[EnsuredRole]:
            created = await self.create(project_id, branch_id, name=name, no_login=no_login)
            return Ensured(
                result=EnsuredRole(role=created.role, operations=created.operations, created=True)
            )

        ensured = await adopt_or_create(adopt, create, self._runner.retry)
        return await wait_until_ready(self._runner, project_id, ensured, options)


def _role_differences(found: Role, *, no_login: bool | UnsetType) -> list[str]:
    """Return the known differences. Old records do not contain an authentication method."""
    if no_login is UNSET or found.authentication_method is None:
        return []
    is_without_login = found.authentication_method == _NO_LOGIN
    if is_without_login == no_login:
        return []
    return [f"no_login is {is_without_login} instead of {no_login}"]


class Endpoints(EndpointCalls):
    """Computes: the calls of the API, and methods that combine them.

    For ``wait``, see :meth:`neon.branches.create`.
    """

    async def ensure(
        self,
        project_id: str,
        *,
        branch_id: str,
        type: EndpointTypeName = EndpointType.READ_WRITE,
        wait: Wait = False,
        **compute: Unpack[ComputeSettings],
    ) -> EnsuredEndpoint:
        """Return the ``read_write`` compute of a branch. Create it if it does not exist.

        See :meth:`neon.branches.ensure`. ``read_write`` is the only ``type``: a branch may have any
        number of ``read_only`` computes, so a repeated call could not recognize its own. Create
        ``read_only`` computes together with the branch, with the ``endpoints`` of
        :meth:`neon.branches.ensure`.

        Raises MismatchError if the compute exists but differs from a given setting, and otherwise
        the errors of :meth:`create`.
        """
        if type != EndpointType.READ_WRITE:
            raise ValueError(
                f"type is {str(type)!r}: expected 'read_write', the only type that a branch has at "
                "most once; call create(), or branches.ensure() with endpoints="
            )
        check_settings(ComputeSettings, compute)
        path_segment("branch_id", branch_id)
        options = checked_wait(wait, no_compute=no_compute_with(compute))

        async def create() -> Ensured[EnsuredEndpoint]:
            created = await self.create(project_id, branch_id=branch_id, type=type, **compute)
            result = EnsuredEndpoint(
                endpoint=created.endpoint, operations=created.operations, created=True
            )
            return Ensured(result=result)

        adopt = partial(self._adopt, project_id, branch_id, compute)
        ensured = await adopt_or_create(adopt, create, self._runner.retry)
        return await wait_until_ready(self._runner, project_id, ensured, options)

    async def _adopt(
        self, project_id: str, branch_id: str, wanted: Mapping[str, object]
    ) -> Ensured[EnsuredEndpoint] | None:
        """Return the read_write compute of a branch. Raise MismatchError if it differs."""
        lists = ProjectLists(self._runner, project_id)
        computes = await lists.computes(branch_id)
        found = next((one for one in computes if one.type == EndpointType.READ_WRITE), None)
        if found is None:
            return None
        differences = compute_differences(found, wanted)
        if differences:
            raise MismatchError(
                f"compute {found.id} of branch {branch_id}",
                existing=found,
                differences=differences,
                path=f"/projects/{project_id}/endpoints",
            )
        operations, unexplained = await lists.work_on(None, [found])
        adopted = EnsuredEndpoint(endpoint=found, operations=operations, created=False)
        return Ensured(result=adopted, unexplained=unexplained)
