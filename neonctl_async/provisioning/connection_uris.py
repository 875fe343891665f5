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
    """Return the URI of a database. Request the databases first if a name is missing."""
    if database_name is None or role_name is None:
        # Not databases.get(): the name of a database may contain a slash.
        listed = await databases.list(project_id, branch_id)
        database = choose_database(branch_id, listed, database_name)
        database_name, role_name = database.name, role_name or database.owner_name
    return await projects.connection_uri(
        project_id,
        branch_id=branch_id,
        database_name=database_name,
        role_name=role_name,
        endpoint_id=UNSET if endpoint_id is None else endpoint_id,
        pooled=pooled,
    )


def choose_database(branch_id: str, databases: Sequence[Database], name: str | None) -> Database:
    """Return the database with this name. Without a name, return the only database.

    Raises ValueError, with the names, if there is no such database or more than one.
    """
    if not databases:
        raise ValueError(f"branch {branch_id} has no database: create one first")
    names = ", ".join(sorted(database.name for database in databases))
    found = [database for database in databases if name in {None, database.name}]
    if not found:
        raise ValueError(f"branch {branch_id} has no database {name!r}: it has {names}")
    if len(found) > 1:
        raise ValueError(f"branch {branch_id} has {len(found)} databases, {names}: choose one")
    return found[0]
