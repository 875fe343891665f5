"""Provision branches in a process that may be killed at any moment, and is then run again.

    python examples/recovery.py [BRANCHES] [--journal FILE]

However often it was killed: a run that is left alone ends with the branches asked for, each there
once, and ready. A branch whose creation failed is told: delete it, and run again. Runs against a
local control plane, offline, whose data lies beside the journal; against the project
NEON_PROJECT_ID of the platform if NEON_API_KEY is set.

- A name is given once in a project, so what may not have been made is asked for again. Where it has
  been made, even just now by a late request of a process long dead, the answer is 409.
- The operations of a branch are in the journal before they are waited for.
- Those of a branch that the journal does not have are found in the history of the project.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import msgspec
from tenacity import retry, retry_if_exception, stop_after_attempt

from neonctl_async import (
    Branch,
    ConflictError,
    EndpointSpec,
    NeonClient,
    NeonError,
    OperationRef,
)
from neonctl_async.local import LocalControlPlane

MOMENT = timedelta(minutes=1)
"""How far apart a branch and the operations that make it may say that they were created."""


class Entry(msgspec.Struct, frozen=True):
    """A line of the journal: a branch that is there, and what is yet to be waited for."""

    name: str
    branch_id: str
    pending: list[OperationRef]


def read(journal: Path) -> dict[str, Entry]:
    """The last entry of each branch."""
    entries: dict[str, Entry] = {}
    for line in journal.read_bytes().splitlines() if journal.exists() else ():
        with suppress(msgspec.DecodeError):  # torn: what it was to tell is found out again
            entry = msgspec.json.decode(line, type=Entry)
            entries[entry.name] = entry
    return entries


def write(journal: Path, entry: Entry) -> None:
    """Come back when the entry is on disk."""
    with journal.open("ab") as file:
        file.write(b"\n" + msgspec.json.encode(entry))  # the line before it may be torn
        file.flush()
        os.fsync(file.fileno())


@asynccontextmanager
async def connect(data: Path) -> AsyncGenerator[tuple[NeonClient, str]]:
    """The platform if there is a key for it, else a local control plane; and a project there."""
    if os.environ.get("NEON_API_KEY"):
        async with NeonClient() as neon:
            yield neon, os.environ.get("NEON_PROJECT_ID") or sys.exit("set NEON_PROJECT_ID as well")
    else:
        async with LocalControlPlane(data=data) as plane:
            key = await plane.create_api_key("recovery")
            async with NeonClient(key, base_url=plane.base_url) as neon:
                # Projects may share a name, so no 409 keeps a late request from making a second
                # one. But here none comes late: the plane dies with the process.
                projects = await neon.projects.list().collect()
                if not projects:
                    projects = [(await neon.projects.create(name="recovery")).project]
                yield neon, projects[0].id


async def provision(
    neon: NeonClient, project_id: str, name: str, entry: Entry | None, journal: Path
) -> None:
    """See to it that a branch is there and ready, from where an earlier run left off."""
    if entry is None:
        entry = await ask(neon, project_id, name)
        await asyncio.to_thread(write, journal, entry)
    if entry.pending:
        await neon.operations.wait(entry.pending)
        await asyncio.to_thread(write, journal, Entry(name, entry.branch_id, pending=[]))
    print(f"{name} is ready")


def may_have_been_made(error: BaseException) -> bool:
    """Whether an error leaves it open: then asking again tells."""
    return isinstance(error, NeonError) and error.maybe_delivered


@retry(retry=retry_if_exception(may_have_been_made), stop=stop_after_attempt(3), reraise=True)
async def ask(neon: NeonClient, project_id: str, name: str) -> Entry:
    """Ask for a branch, again if no answer tells; take over the one that has the name."""
    try:
        created = await neon.branches.create(
            project_id, name=name, endpoints=[EndpointSpec(type="read_write")]
        )
    except ConflictError:
        for branch in await neon.branches.list(project_id, search=name).collect():
            if branch.name == name:
                print(f"{name} was there already")
                return Entry(name, branch.id, await find_operations(neon, branch))
        raise
    return Entry(name, created.branch.id, [operation.ref for operation in created.operations])


async def find_operations(neon: NeonClient, branch: Branch) -> list[OperationRef]:
    """The operations that make a branch, from the history of its project."""
    found: list[OperationRef] = []
    async for operation in neon.operations.list(branch.project_id):  # newest first
        age = operation.created_at - branch.created_at
        if age < -MOMENT:
            break
        if operation.branch_id == branch.id and age < MOMENT:
            found.append(operation.ref)
    return found


async def main(count: int, journal: Path) -> int:
    """The exit code: 0 if every branch is ready."""
    names = [f"recovery-{number}" for number in range(count)]
    entries = await asyncio.to_thread(read, journal)
    async with connect(journal.with_name(f"{journal.name}.db")) as (neon, project_id):
        there = {branch.id async for branch in neon.branches.list(project_id)}
        known = {entry.name: entry for entry in entries.values() if entry.branch_id in there}
        print(f"at {neon.base_url}: {len(known)} of {count} branches are in the journal")
        outcomes = await asyncio.gather(
            *(provision(neon, project_id, name, known.get(name), journal) for name in names),
            return_exceptions=True,
        )
    for name, outcome in zip(names, outcomes, strict=True):
        if isinstance(outcome, NeonError):
            print(f"{name} is not ready: {outcome}")
        elif outcome is not None:
            raise outcome
    print(f"{outcomes.count(None)} of {count} branches are ready")
    return 0 if outcomes.count(None) == count else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Provision branches, through kill and restart.")
    parser.add_argument("branches", nargs="?", type=int, default=20)
    parser.add_argument("--journal", type=Path, default=Path("recovery.jsonl"), metavar="FILE")
    arguments = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(arguments.branches, arguments.journal)))
    except NeonError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
