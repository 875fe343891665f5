"""Databases of failed tests, which exist for a while after the test run."""

import asyncio
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from types import NoneType
from typing import Final

from neonctl_async.client import NeonClient
from neonctl_async.models.connection_uri import ConnectionUri
from neonctl_async.testing.plugin.control_plane import TenantClient
from neonctl_async.testing.plugin.tenant_calls import TenantAdded
from neonctl_local.postgres.cache import write_private

LIMIT: Final = 10
"""The number of databases that a worker keeps. If everything fails, the first ones suffice."""

SERVICE: Final = "failed"
"""The name of the service in each file."""


class KeptDatabases:
    """Copies databases to a tenant that nobody resets.

    ``new_client`` returns a client for the first key of a tenant.
    """

    def __init__(self, control: NeonClient, new_client: Callable[[str], NeonClient]) -> None:
        self._control = control
        self._new_client = new_client
        self._tenant: TenantAdded | None = None
        self._count = 0

    async def keep(self, source: TenantClient, branch_id: str, database: str | None = None) -> str:
        """Copy the database of a branch, which may be in use, as it is now.

        Return a command that connects to the copy, there to ``database`` if it is not None. It
        contains no password, only the path of a file that has it. Raise RuntimeError if ``LIMIT``
        databases are kept already.
        """
        if self._count == LIMIT:
            raise RuntimeError(f"{LIMIT} databases are kept already")
        self._count += 1
        directory = Path(await self._control.request("POST", "/kept", type=str))
        if self._tenant is None:
            self._tenant = await self._control.request("POST", "/tenants", type=TenantAdded)
        tenant = TenantClient(self._control, self._tenant.number)
        template = await source.call("publish_template", str, branch_id=branch_id)
        await tenant.call("use_template", NoneType, template=template)
        async with self._new_client(self._tenant.api_key) as neon:
            created = await neon.projects.create(name=branch_id, wait=True)
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        file = directory / f"{worker}-{self._count}.conf"
        await asyncio.to_thread(write_private, file, _service(created.connection_uri, database))
        return f"PGSERVICEFILE={shlex.quote(str(file))} psql service={SERVICE}"


def _service(uri: ConnectionUri, database: str | None) -> str:
    """Return the text of a connection service file of Postgres."""
    settings = {
        "host": uri.host,
        "port": str(uri.port),
        "dbname": database or uri.database,
        "user": uri.role,
        "password": uri.password.reveal(),
        **uri.options,
    }
    lines = [f"{name}={value}" for name, value in settings.items()]
    return "\n".join([f"[{SERVICE}]", *lines, ""])
