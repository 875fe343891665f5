"""The databases and roles of a branch, and the forms that create and delete a database."""

from collections.abc import Sequence

import msgspec
from aiohttp import web
from markupsafe import Markup

from neonctl_local.console.notices import sentence, started
from neonctl_local.console.pages.branch_context import (
    branch_path,
    call_branch,
    find_project,
)
from neonctl_local.console.records import (
    Branch,
    BranchFound,
    Database,
    Databases,
    Project,
    Role,
    Roles,
    Started,
    StartedOperation,
)
from neonctl_local.console.visits import Visit
from neonctl_local.errors import ApiError, not_found
from neonctl_local.server.application import CONSOLE_PATH

BRANCH = "/projects/{project_id}/branches/{branch_id}"


class BranchObjects(msgspec.Struct, frozen=True, kw_only=True):
    """The databases and roles of a branch, for the templates ``branch_….html``."""

    project_id: str
    branch_id: str
    databases: list[Database]
    roles: list[Role]

    @property
    def url(self) -> str:
        """The path of the branch's page."""
        return CONSOLE_PATH + branch_path(self.project_id, self.branch_id)

    def owned_by(self, role_name: str) -> list[str]:
        """Return the names of the databases that a role owns. Such a role cannot be deleted."""
        return [found.name for found in self.databases if found.owner_name == role_name]


async def read(visit: Visit, project_id: str, branch_id: str) -> BranchObjects:
    """Read the databases and roles of a branch."""
    databases = await visit.call(
        f"GET {BRANCH}/databases", Databases, project_id=project_id, branch_id=branch_id
    )
    roles = await visit.call(
        f"GET {BRANCH}/roles", Roles, project_id=project_id, branch_id=branch_id
    )
    return BranchObjects(
        project_id=project_id,
        branch_id=branch_id,
        databases=databases.databases,
        roles=roles.roles,
    )


async def show_new(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET …/databases/new``: the form that creates a database."""
    return show_found(visit, await read_context(visit), "database_new.html", error=error)


async def create(visit: Visit) -> web.StreamResponse:
    """``POST …/databases/new``: create a database."""
    name = visit.typed("name")
    body = {"database": {"name": name, "owner_name": visit.typed("owner_name")}}
    try:
        created = await call_branch(visit, "POST", "/databases", Started, body=body)
    except ApiError as error:
        return await show_new(visit, error=error)
    notice = with_operations(visit, sentence("Database {} created.", name), created.operations)
    return visit.redirect(path_of_branch(visit), notice)


async def show_delete(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET …/databases/delete?name=…``: ask for confirmation."""
    name = chosen_name(visit)
    found = await read_context(visit)
    if name not in [database.name for database in found.objects.databases]:
        raise not_found("database", name)
    return show_found(visit, found, "database_delete.html", error=error, name=name)


async def delete(visit: Visit) -> web.StreamResponse:
    """``POST …/databases/delete``: delete a database."""
    name = chosen_name(visit)
    route = f"DELETE {BRANCH}/databases/{{database_name}}"
    try:
        response = await visit.call(
            route,
            object,
            project_id=visit.path["project_id"],
            branch_id=visit.path["branch_id"],
            database_name=name,
        )
    except ApiError as error:
        return await show_delete(visit, error=error)
    done = sentence("Database {} deleted.", name)
    return visit.redirect(path_of_branch(visit), with_operations(visit, done, started_by(response)))


class BranchContext(msgspec.Struct, frozen=True, kw_only=True):
    """A branch with its project, databases and roles, for pages about a database or role."""

    project: Project
    branch: Branch
    objects: BranchObjects


async def read_context(visit: Visit) -> BranchContext:
    """Read the branch in the path, with its project, databases and roles."""
    project = await find_project(visit)
    found = await call_branch(visit, "GET", "", BranchFound)
    objects = await read(visit, project.id, found.branch.id)
    return BranchContext(project=project, branch=found.branch, objects=objects)


def show_found(
    visit: Visit,
    found: BranchContext,
    template: str,
    *,
    error: ApiError | None = None,
    **context: object,
) -> web.StreamResponse:
    """Return a page about a database or role of a branch."""
    return visit.page(
        template,
        error=error,
        status=None,
        project=found.project,
        branch=found.branch,
        objects=found.objects,
        **context,
    )


def with_operations(visit: Visit, done: Markup, operations: Sequence[StartedOperation]) -> Markup:
    """Return a notice about a change of the branch and the operations that it started."""
    return started(done, visit.path["project_id"], visit.path["branch_id"], operations)


def started_by(response: object) -> Sequence[StartedOperation]:
    """Return the operations of a response. The response to a repeated deletion is empty."""
    return () if response is None else msgspec.convert(response, Started).operations


def path_of_branch(visit: Visit) -> str:
    """Return the path, below ``/console``, of the visited branch's page."""
    return branch_path(visit.path["project_id"], visit.path["branch_id"])


def chosen_name(visit: Visit) -> str:
    """Return the name of a database or role. It can be ``..``, so it is not part of the path."""
    return visit.form.get("name") or visit.query.get("name", "")
