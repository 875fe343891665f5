"""A local control plane with many records, in its own process.

The argument is the path of a new data file. The process prints the port, a key and a project as
JSON, and serves until its standard input is closed.
"""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from neonctl_local import Durations, LocalControlPlane
from neonctl_local.api import branches, projects
from neonctl_local.api.request.calls import Call
from neonctl_local.clock import utc_now
from neonctl_local.engine import accounts, api_keys
from neonctl_local.engine.api_keys import Principal
from neonctl_local.engine.operations import OperationChain
from neonctl_local.settings import Rules
from neonctl_local.storage.database import Database
from neonctl_local.storage.tables import Project
from neonctl_local.storage.transactions import Transaction

ROOT = Path(__file__).parents[2]
COMMON = "check_availability"
"""The action of most operations."""


class Sizes(msgspec.Struct, frozen=True):
    """The numbers of records."""

    keys: int
    projects: int
    operations: int
    branches: int = 0


class LargeControlPlane(msgspec.Struct, frozen=True):
    """The base URL of a server, its key, and the project with most operations.

    ``console_url`` signs in to the console, once. ``pid`` is the process of the server.
    """

    base_url: str
    api_key: str
    project_id: str
    console_url: str = ""
    pid: int = 0


@asynccontextmanager
async def large_control_plane(data: Path, sizes: Sizes) -> AsyncGenerator[LargeControlPlane]:
    """Run a server with a new data file in its own process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.servers.large_control_plane"),
        *(os.fspath(data), msgspec.json.encode(sizes).decode()),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = await process.stdout.readline()
        yield msgspec.json.decode(line, type=LargeControlPlane)
    finally:
        process.stdin.close()
        await process.wait()


def fill(tx: Transaction, account: accounts.FirstAccount, sizes: Sizes) -> str:
    """Store the records of one user. Return the id of the project with the operations."""
    principal = api_keys.authenticate(tx, f"Bearer {account.api_key}", "127.0.0.1")
    for number in range(sizes.keys):
        api_keys.create_user_key(tx, account.user_id, f"key {number}")
    tx.execute("UPDATE api_keys SET last_used_at = created_at WHERE id % 10 = 0")
    call = Call(principal=principal, path={}, query={}, content=b'{"project": {}}')
    for _ in range(sizes.projects):
        projects.create(tx, call)
    (project,) = tx.select(Project, "ORDER BY created_at DESC LIMIT 1")
    branch_ids = _add_branches(tx, principal, project.id, sizes.branches) or ["br-benchmark-1"]
    for number in range(sizes.operations):
        branch_id = branch_ids[number % len(branch_ids)]
        OperationChain(tx, project.id).add(COMMON, branch_id=branch_id)
    tx.execute("UPDATE operations SET outcome = 'failed', error = 'planned' WHERE rowid % 9973 = 0")
    return project.id


def _add_branches(tx: Transaction, principal: Principal, project_id: str, count: int) -> list[str]:
    """Create branches, each second one with a compute, in a tree. Return their ids."""
    ids: list[str] = []
    for number in range(count):
        spec: dict[str, object] = {"name": f"preview/{number}"}
        if number % 10:
            spec["parent_id"] = ids[number // 10 * 10]
        endpoints = [{"type": "read_write"}] if number % 2 else []
        content = msgspec.json.encode({"branch": spec, "endpoints": endpoints})
        path = {"project_id": project_id}
        call = Call(principal=principal, path=path, query={}, content=content)
        created = msgspec.json.decode(branches.create(tx, call).content)
        ids.append(created["branch"]["id"])
    return ids


async def serve(data: Path, sizes: Sizes) -> None:
    """Fill a new file, and serve it until the standard input is closed."""
    logging.disable(logging.WARNING)  # each key above the recommended number logs a warning
    database = Database(data, utc_now, Rules(durations=Durations(default=0)))
    await database.open()
    account = await database.run(accounts.ensure_first_account)
    project_id = await database.run(fill, account, sizes)
    await database.close()
    async with LocalControlPlane(data=data) as server:
        key, link = account.api_key or "", server.console_url
        ready = LargeControlPlane(server.base_url, key, project_id, link, os.getpid())
        print(msgspec.json.encode(ready).decode(), flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), msgspec.json.decode(sys.argv[2], type=Sizes)))
