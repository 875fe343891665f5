"""The migration that the suite tests; it needs no Postgres.

A real migration would connect to ``created.connection_uri.asyncpg`` and run SQL.
"""

from neonctl_async import NeonClient
from neonctl_async.types import BranchCreated


async def migrate(neon: NeonClient, created: BranchCreated) -> None:
    """Create the ``billing`` database, and a role that owns it."""
    branch = (created.branch.project_id, created.branch.id)
    await neon.roles.create(*branch, name="billing", wait=True)
    await neon.databases.create(*branch, name="billing", owner_name="billing", wait=True)


async def databases_of(neon: NeonClient, created: BranchCreated) -> set[str]:
    """Return the names of a branch's databases."""
    databases = await neon.databases.list(created.branch.project_id, created.branch.id)
    return {database.name for database in databases}
