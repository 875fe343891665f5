"""What the suite tests: a migration, as far as one needs no Postgres.

Yours would connect to ``created.connection_uri.reveal()`` and run its SQL there.
"""

from neonctl_async import NeonClient
from neonctl_async.types import BranchCreated


async def migrate(neon: NeonClient, created: BranchCreated) -> None:
    """Give a branch the database of the billing, and a role that owns it."""
    where = (created.branch.project_id, created.branch.id)
    await neon.roles.create(*where, name="billing", wait=True)
    await neon.databases.create(*where, name="billing", owner_name="billing", wait=True)


async def databases_of(neon: NeonClient, created: BranchCreated) -> set[str]:
    """The names of the databases of a branch."""
    databases = await neon.databases.list(created.branch.project_id, created.branch.id)
    return {database.name for database in databases}
