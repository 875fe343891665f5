"""The connection string of a branch. Its password is hidden until it is requested."""

from collections.abc import Mapping, Sequence

import msgspec
from aiohttp import web

from neonctl_local.console.pages.branch_context import call_branch
from neonctl_local.console.pages.databases import BranchObjects, read_context, show_found
from neonctl_local.console.records import ConnectionUri, Endpoint, Endpoints
from neonctl_local.console.visits import Visit
from neonctl_local.errors import ApiError


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """A connection string, and the options chosen. ``problem`` explains why there is no string.

    ``choose_url`` is the URL of the page that shows other options. ``branches`` contains the names
    of the branches that can be chosen, and is empty if no other branch can be chosen.
    """

    choose_url: str
    branch: str = ""
    branches: list[str] = []
    database: str
    role: str
    pooled: bool
    uri: str = ""
    problem: str = ""
    has_password: bool = False
    is_real: bool = False

    def __repr__(self) -> str:
        """Return a string without the URI, which may contain the password."""
        return f"<Connection to {self.database} as {self.role}>"


async def read(
    visit: Visit,
    objects: BranchObjects,
    endpoints: Sequence[Endpoint],
    chosen: Mapping[str, str],
    *,
    choose_url: str,
    password: bool = False,
) -> Connection:
    """Read the connection string for the chosen database, role and pooling.

    ``objects`` and ``endpoints`` are those of the branch. The default is the first database and its
    owner. With ``password``, the string includes the password.
    """
    database = _database(objects, chosen)
    role = _role(objects, chosen, database)
    connection = Connection(
        choose_url=choose_url,
        database=database,
        role=role,
        pooled=bool(chosen.get("pooled")),
        has_password=password,
        is_real=visit.state.databases is not None,
    )
    if not database or not role:
        missing = "database" if not database else "role that can log in"
        return msgspec.structs.replace(
            connection, problem=f"The branch has no {missing}. Create one first."
        )
    if not endpoints:
        return msgspec.structs.replace(
            connection, problem="The branch has no compute. Add one to connect."
        )
    try:
        uri = await _uri(visit, objects, connection)
    except ApiError as error:
        return msgspec.structs.replace(connection, problem=error.message)
    return msgspec.structs.replace(connection, uri=uri if password else without_password(uri))


async def _uri(visit: Visit, objects: BranchObjects, connection: Connection) -> str:
    query = {
        "branch_id": objects.branch_id,
        "database_name": connection.database,
        "role_name": connection.role,
    }
    if connection.pooled:
        query["pooled"] = "true"
    found = await visit.call(
        "GET /projects/{project_id}/connection_uri",
        ConnectionUri,
        query=query,
        project_id=objects.project_id,
    )
    return found.uri


def without_password(uri: str) -> str:
    """Return a connection URI without its password. Programs then prompt for the password."""
    scheme, _, rest = uri.partition("://")
    login, _, address = rest.partition("@")
    return f"{scheme}://{login.partition(':')[0]}@{address}"


async def show(visit: Visit) -> web.StreamResponse:
    """``GET …/connection``: the connection string without the password."""
    return await _show(visit, visit.query, password=False)


async def show_password(visit: Visit) -> web.StreamResponse:
    """``POST …/connection``: the connection string with the password."""
    return await _show(visit, visit.form, password=True)


async def _show(visit: Visit, chosen: Mapping[str, str], *, password: bool) -> web.StreamResponse:
    found = await read_context(visit)
    url = f"{found.objects.url}/connection"
    endpoints = (await call_branch(visit, "GET", "/endpoints", Endpoints)).endpoints
    connection = await read(
        visit, found.objects, endpoints, chosen, choose_url=url, password=password
    )
    return show_found(visit, found, "connection.html", connection=connection)


def _database(objects: BranchObjects, chosen: Mapping[str, str]) -> str:
    names = [database.name for database in objects.databases]
    wanted = chosen.get("database", "")
    return wanted if wanted in names else next(iter(names), "")


def _role(objects: BranchObjects, chosen: Mapping[str, str], database: str) -> str:
    names = [role.name for role in objects.roles if role.can_log_in]
    owners = [found.owner_name for found in objects.databases if found.name == database]
    for wanted in (chosen.get("role", ""), *owners, *names):
        if wanted in names:
            return wanted
    return ""
