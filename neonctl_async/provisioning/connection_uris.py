"""The connection URI of a branch, without the names of its database and role."""

from collections.abc import Sequence

from msgspec import UNSET

from neonctl_async.models.connection_uri import ConnectionUri
from neonctl_async.models.databases import Database
from neonctl_async.resources.databases import Databases
from neonctl_async.resources.projects import Projects


async def connection_uri(
    projects: Projects,
    databases: Databases,
    project_id: str,
    branch_id: str,
    *,
    database_name: str | None,
    role_name: str | None,
    endpoint_id: str | None,
    pooled: bool,
) -> ConnectionUri:
    """Return the URI of a database. Request the database first if a name is missing."""
    if database_name is None:
        database = only_database(branch_id, await databases.list(project_id, branch_id))
        database_name, role_name = database.name, role_name or database.owner_name
    elif role_name is None:
        role_name = (await databases.get(project_id, branch_id, database_name)).owner_name
    return await projects.connection_uri(
        project_id,
        branch_id=branch_id,
        database_name=database_name,
        role_name=role_name,
        endpoint_id=UNSET if endpoint_id is None else endpoint_id,
        pooled=pooled,
    )


def only_database(branch_id: str, databases: Sequence[Database]) -> Database:
    """Return the only database. Raise ValueError if there is none, or more than one."""
    if not databases:
        raise ValueError(f"branch {branch_id} has no database: create one with databases.create()")
    if len(databases) > 1:
        names = ", ".join(sorted(database.name for database in databases))
        raise ValueError(
            f"branch {branch_id} has {len(databases)} databases: choose one of {names} with "
            "database_name="
        )
    return databases[0]
