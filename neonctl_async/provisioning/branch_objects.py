"""Ensure databases, roles and computes of a branch: adopt the existing one, or create it."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

from msgspec import UNSET, UnsetType

from neonctl_async.errors import MismatchError, NotFoundError
from neonctl_async.models.databases import EnsuredDatabase
from neonctl_async.models.endpoints import EndpointType, EndpointUpdated, EnsuredEndpoint
from neonctl_async.models.roles import EnsuredRole, Role
from neonctl_async.provisioning.attempts import adopt_or_create
from neonctl_async.provisioning.differences import compute_differences
from neonctl_async.provisioning.project_lists import ProjectLists
from neonctl_async.provisioning.readiness import Ensured, wait_until_ready
from neonctl_async.resources.base import Requester
from neonctl_async.resources.databases import Databases
from neonctl_async.resources.roles import Roles
from neonctl_async.waiting.options import Wait, WaitOptions, wait_options

_NO_LOGIN: Final = "no_login"


async def ensure_database(
    databases: Databases,
    requester: Requester,
    project_id: str,
    branch_id: str,
    *,
    name: str,
    owner_name: str,
    wait: Wait,
) -> EnsuredDatabase:
    """Implement ``databases.ensure``."""
    options = wait_options(wait)

    async def adopt() -> Ensured[EnsuredDatabase] | None:
        try:
            found = await databases.get(project_id, branch_id, name)
        except NotFoundError:
            return None
        if found.owner_name != owner_name:
            raise MismatchError(
                f"database {name!r} of branch {branch_id}",
                existing=found,
                differences=[f"its owner is {found.owner_name!r} instead of {owner_name!r}"],
                path=f"/projects/{project_id}/branches/{branch_id}/databases",
            )
        lists = ProjectLists(requester, project_id)
        operations = await lists.work_of_object(branch_id, found.created_at)
        adopted = EnsuredDatabase(database=found, operations=operations, created=False)
        return Ensured(result=adopted, branch_id=branch_id)

    async def create() -> Ensured[EnsuredDatabase]:
        created = await databases.create(project_id, branch_id, name=name, owner_name=owner_name)
        return Ensured(
            result=EnsuredDatabase(
                database=created.database, operations=created.operations, created=True
            )
        )

    ensured = await adopt_or_create(adopt, create, requester.retry)
    return await wait_until_ready(requester, project_id, ensured, options)


async def ensure_role(
    roles: Roles,
    requester: Requester,
    project_id: str,
    branch_id: str,
    *,
    name: str,
    no_login: bool | UnsetType,
    wait: Wait,
) -> EnsuredRole:
    """Implement ``roles.ensure``."""
    options = wait_options(wait)

    async def adopt() -> Ensured[EnsuredRole] | None:
        try:
            found = await roles.get(project_id, branch_id, name)
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
        lists = ProjectLists(requester, project_id)
        operations = await lists.work_of_object(branch_id, found.created_at)
        adopted = EnsuredRole(role=found, operations=operations, created=False)
        return Ensured(result=adopted, branch_id=branch_id)

    async def create() -> Ensured[EnsuredRole]:
        created = await roles.create(project_id, branch_id, name=name, no_login=no_login)
        return Ensured(
            result=EnsuredRole(role=created.role, operations=created.operations, created=True)
        )

    ensured = await adopt_or_create(adopt, create, requester.retry)
    return await wait_until_ready(requester, project_id, ensured, options)


def _role_differences(found: Role, *, no_login: bool | UnsetType) -> list[str]:
    """Return the differences that are known: old records have no authentication method."""
    if no_login is UNSET or found.authentication_method is None:
        return []
    is_without_login = found.authentication_method == _NO_LOGIN
    if is_without_login == no_login:
        return []
    return [f"no_login is {is_without_login} instead of {no_login}"]


async def ensure_endpoint(
    requester: Requester,
    project_id: str,
    branch_id: str,
    create: Callable[[], Awaitable[EndpointUpdated]],
    settings: Mapping[str, object],
    options: WaitOptions | None,
) -> EnsuredEndpoint:
    """Implement ``endpoints.ensure``. ``create`` creates a compute with the ``settings``."""
    lists = ProjectLists(requester, project_id)
    ensured = await adopt_or_create(
        partial(_adopt_endpoint, lists, branch_id, settings),
        partial(_create_endpoint, create),
        requester.retry,
    )
    return await wait_until_ready(requester, project_id, ensured, options)


async def _adopt_endpoint(
    lists: ProjectLists, branch_id: str, wanted: Mapping[str, object]
) -> Ensured[EnsuredEndpoint] | None:
    """Return the read_write compute of a branch. Raise MismatchError if it differs."""
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
            path=f"/projects/{found.project_id}/endpoints",
        )
    operations, unexplained = await lists.work_on(None, [found])
    adopted = EnsuredEndpoint(endpoint=found, operations=operations, created=False)
    return Ensured(result=adopted, unexplained=unexplained)


async def _create_endpoint(
    creation: Callable[[], Awaitable[EndpointUpdated]],
) -> Ensured[EnsuredEndpoint]:
    created = await creation()
    result = EnsuredEndpoint(endpoint=created.endpoint, operations=created.operations, created=True)
    return Ensured(result=result)
