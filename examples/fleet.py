"""Provision the branches that a CSV file lists, in a process that may be killed at any moment.

    python examples/fleet.py [CSV] [--results FILE] [--fail N]

Each customer has a project, made if there is none of that name; each row is a branch there, with a
compute. What was made goes to the results, a line of JSON at a time. Run it again, and it skips
what is ready, waits on for what is pending, and asks for the rest: a run that is left alone ends
with each branch there once, and ready. A branch whose creation failed is told: delete it, and run
again. Runs against a local control plane, offline, whose data lies beside the results and where
--fail has N branches fail; against the platform if NEON_API_KEY is set.
"""

import argparse
import asyncio
import csv
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
from ensure_branch import ensure_branch

from neonctl_async import EndpointSpec, NeonClient, NeonError, OperationRef
from neonctl_async.local import LocalControlPlane

SAMPLE = Path(__file__).with_suffix(".csv")


class Row(msgspec.Struct, frozen=True):
    """A branch that is wanted."""

    customer: str
    region: str
    branch: str
    max_cu: float

    def __str__(self) -> str:
        return f"{self.branch} of {self.customer}"


class Result(msgspec.Struct, frozen=True):
    """A branch that is there, and what is yet to be waited for."""

    customer: str
    branch: str
    project_id: str
    branch_id: str
    pending: list[OperationRef]


def wanted(file: Path) -> list[Row]:
    """The rows of the CSV file."""
    with file.open(newline="", encoding="utf-8-sig") as lines:
        return msgspec.convert(list(csv.DictReader(lines)), list[Row], strict=False)


def read(results: Path) -> list[Result]:
    """What earlier runs wrote, oldest first."""
    told: list[Result] = []
    for line in results.read_bytes().splitlines() if results.exists() else ():
        with suppress(msgspec.DecodeError):  # torn: what it was to tell is found out again
            told.append(msgspec.json.decode(line, type=Result))
    return told


def write(results: Path, result: Result) -> None:
    """Come back when the result is on disk."""
    with results.open("ab") as file:
        file.write(b"\n" + msgspec.json.encode(result))  # the line before it may be torn
        file.flush()
        os.fsync(file.fileno())


@asynccontextmanager
async def connect(data: Path, failures: int) -> AsyncGenerator[NeonClient]:
    """The platform if there is a key for it, else a local control plane with limits like its."""
    if os.environ.get("NEON_API_KEY"):
        async with NeonClient() as neon:
            yield neon
    else:
        async with LocalControlPlane(data=data, rate_limits=True) as control_plane:
            if failures:
                await control_plane.fail_next("create_branch", times=failures)
            key = await control_plane.create_api_key("fleet")
            async with NeonClient(key, base_url=control_plane.base_url) as neon:
                yield neon


async def open_projects(neon: NeonClient, rows: Sequence[Row]) -> dict[str, str]:
    """The id of each customer's project.

    Projects may share a name, so no 409 keeps a late request of a dead process from making a second
    one. They are made one by one: at most one is in doubt then, and a later run tells.
    """
    regions = {row.customer: row.region for row in rows}
    ids: dict[str, str] = {}
    async for project in neon.projects.list():
        if project.name in ids:
            sys.exit(f"two projects are called {project.name}: delete one of them")
        if project.name in regions:
            ids[project.name] = project.id
    for customer in regions.keys() - ids.keys():
        created = await neon.projects.create(name=customer, region_id=regions[customer])
        ids[customer] = created.project.id
    return ids


async def known(
    neon: NeonClient, project_ids: Sequence[str], results: Path
) -> dict[tuple[str, str], Result]:
    """The last result of each branch that is there still."""
    there: set[str] = set()
    for project_id in project_ids:
        there |= {branch.id async for branch in neon.branches.list(project_id)}
    return {
        (result.project_id, result.branch): result
        for result in await asyncio.to_thread(read, results)
        if result.branch_id in there
    }


async def provision(
    neon: NeonClient, project_id: str, row: Row, result: Result | None, results: Path
) -> None:
    """See to it that a branch is there and ready, from where an earlier run left off."""
    if result is None:
        compute = EndpointSpec(type="read_write", autoscaling_limit_max_cu=row.max_cu)
        ensured = await ensure_branch(neon, project_id, row.branch, compute)
        result = Result(
            row.customer, row.branch, project_id, ensured.branch_id, pending=ensured.operations
        )
        await asyncio.to_thread(write, results, result)
    if result.pending:
        await neon.operations.wait(result.pending)
        await asyncio.to_thread(write, results, msgspec.structs.replace(result, pending=[]))


async def main(rows: Sequence[Row], results: Path, failures: int) -> int:
    """The exit code: 0 if every branch is ready."""
    async with connect(results.with_name(f"{results.name}.db"), failures) as neon:
        projects = await open_projects(neon, rows)
        made = await known(neon, list(projects.values()), results)
        print(f"at {neon.base_url}: {len(made)} branches are among the results", flush=True)
        places = [(projects[row.customer], row) for row in rows]
        outcomes = await asyncio.gather(
            *(
                provision(neon, project_id, row, made.get((project_id, row.branch)), results)
                for project_id, row in places
            ),
            return_exceptions=True,  # one that fails takes none of the others with it
        )
        print(f"{neon.requests_sent} requests sent in all")
    for row, outcome in zip(rows, outcomes, strict=True):
        if isinstance(outcome, NeonError):
            print(f"{row} is not ready: {outcome}")
        elif outcome is not None:
            raise outcome
    print(f"{outcomes.count(None)} of {len(rows)} branches are ready")
    return 0 if outcomes.count(None) == len(rows) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Provision branches, through kill and restart.")
    parser.add_argument("csv", nargs="?", type=Path, default=SAMPLE, metavar="CSV")
    parser.add_argument("--results", type=Path, default=Path("fleet.jsonl"), metavar="FILE")
    parser.add_argument("--fail", type=int, default=0, metavar="N")
    arguments = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(wanted(arguments.csv), arguments.results, arguments.fail)))
    except (NeonError, OSError, msgspec.ValidationError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        print("interrupted: run it again, and it goes on from here", file=sys.stderr)
        sys.exit(130)
