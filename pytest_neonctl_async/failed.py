"""Keeps the databases of failed tests for a while after the test run."""

import asyncio
import os
import shlex
from pathlib import Path
from types import NoneType
from typing import Final

import pytest

from neonctl_async import ConnectionUri, NeonError
from neonctl_async.types import BranchCreated
from pytest_neonctl_async.backend import Backend, BranchFactory
from pytest_neonctl_async.control_plane import TenantClient
from pytest_neonctl_async.local import DatabaseBackend
from pytest_neonctl_async.tenant_records import TenantAdded
from pytest_neonctl_async.with_django import BRANCH, BRANCH_KEY

LIMIT: Final = 10
"""The maximum number of databases that a worker keeps, even if every test fails."""

SERVICE: Final = "failed"
"""The name of the service in each Postgres connection service file."""

_KEPT = pytest.StashKey["KeptDatabases"]()


def keep_databases(item: pytest.Item, backend: Backend | None) -> list[str]:
    """Copy the databases of the branches that a test uses. Return a line for each branch."""
    if not isinstance(backend, DatabaseBackend):
        return []
    kept = item.config.stash.setdefault(_KEPT, KeptDatabases())
    lines: list[str] = []
    for branch_id, name in _branches(item).items():
        database = _django_database() if name == BRANCH else None
        try:
            lines.append(f"{name}: {backend.loop.call(kept.keep(backend, branch_id, database))}")
        except (NeonError, OSError, RuntimeError, ValueError) as error:
            lines.append(f"{name} is not kept: {error}")
    return lines


def _django_database() -> str:
    from django.db import DEFAULT_DB_ALIAS, connections

    name: str = connections[DEFAULT_DB_ALIAS].settings_dict["NAME"]
    return name


def _branches(item: pytest.Item) -> dict[str, str]:
    """Map the id of each branch of a test to its fixture's name, or to the id if it has none."""
    branches: dict[str, str] = {}
    values: dict[str, object] = dict(getattr(item, "funcargs", {}))
    # Tests often request Django's databases by a marker.
    if item.get_closest_marker("django_db") or hasattr(getattr(item, "cls", None), "databases"):
        values[BRANCH] = item.config.stash.get(BRANCH_KEY, None)
    for name, value in values.items():
        if isinstance(value, BranchCreated):
            branches[value.branch.id] = name
        elif isinstance(value, BranchFactory):
            branches = {branch_id: branch_id for branch_id in value.branch_ids} | branches
    return branches


class KeptDatabases:
    """Copies databases to a tenant that is never reset."""

    def __init__(self) -> None:
        self._tenant: TenantAdded | None = None
        self._count = 0

    async def keep(
        self, backend: DatabaseBackend, branch_id: str, database: str | None = None
    ) -> str:
        """Copy the current state of a branch's database, which may be in use.

        Return a command that connects to ``database`` in the copy, or to the copy's own database if
        that is None. The command contains no password, only the path of a file with the password.
        Raise RuntimeError if ``LIMIT`` databases are kept already.
        """
        if self._count == LIMIT:
            raise RuntimeError(f"{LIMIT} databases are kept already")
        self._count += 1
        control = backend.control
        directory = Path(await control.request("POST", "/kept", type=str))
        if self._tenant is None:
            self._tenant = await control.request("POST", "/tenants", type=TenantAdded)
        tenant = TenantClient(control, self._tenant.number)
        template = await backend.tenant.call("publish_template", str, branch_id=branch_id)
        await tenant.call("use_template", NoneType, template=template)
        async with backend.client_of(self._tenant.api_key) as neon:
            created = await neon.projects.create(name=branch_id, wait=True)
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        file = directory / f"{worker}-{self._count}.conf"
        await asyncio.to_thread(_write_private, file, _service(created.connection_uri, database))
        return f"PGSERVICEFILE={shlex.quote(str(file))} psql service={SERVICE}"


def _write_private(file: Path, text: str) -> None:
    file.touch(mode=0o600, exist_ok=False)
    file.write_text(text, encoding="utf-8")


def _service(uri: ConnectionUri, database: str | None) -> str:
    """Return the text of a Postgres connection service file."""
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
