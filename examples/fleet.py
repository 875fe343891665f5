"""Create the branches that a CSV file lists, in a process that may be killed at any time.

    python examples/fleet.py [CSV] [--results FILE] [--fail N]

Each customer has a project, which is created if there is none with that name. Each row is a branch
with a compute in this project. Created branches are written to the results file, as lines of JSON.

If the program is killed, run it again. It skips ready branches, waits for pending ones, and creates
the missing ones. After a complete run, each branch exists once and is ready. The program reports
branches whose creation failed; delete them and run it again.

Without NEON_API_KEY, the program works offline, with a local control plane whose data is stored
beside the results. There, --fail makes the creation of N branches fail.
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
    """A row of the CSV file: a branch to create."""

    customer: str
    region: str
    branch: str
    max_cu: float

    def __str__(self) -> str:
        return f"{self.branch} of {self.customer}"


class Result(msgspec.Struct, frozen=True):
    """A created branch, and its pending operations."""

    customer: str
    branch: str
    project_id: str
    branch_id: str
    pending: list[OperationRef]


def read_rows(file: Path) -> list[Row]:
    """Read the CSV file."""
    with file.open(newline="", encoding="utf-8-sig") as lines:
        return msgspec.convert(list(csv.DictReader(lines)), list[Row], strict=False)


def read_results(results: Path) -> list[Result]:
    """Read the results of earlier runs, oldest first."""
    found: list[Result] = []
    for line in results.read_bytes().splitlines() if results.exists() else ():
        with suppress(msgspec.DecodeError):  # an incomplete line; its branch is found again
            found.append(msgspec.json.decode(line, type=Result))
    return found


def write(results: Path, result: Result) -> None:
    """Append a result, and return when it is on disk."""
    with results.open("ab") as file:
        file.write(b"\n" + msgspec.json.encode(result))  # the previous line may be incomplete
        file.flush()
        os.fsync(file.fileno())


@asynccontextmanager
async def connect(data: Path, failures: int) -> AsyncGenerator[NeonClient]:
    """Connect to Neon if NEON_API_KEY is set, otherwise to a rate-limited local control plane."""
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
    """Return the id of each customer's project; create the missing projects.

    Projects may share a name. A late request of a killed process can therefore create a second one,
    without a 409. Projects are created one by one, so this can happen to one project at most, and
    the next run reports it.
    """
    regions = {row.customer: row.region for row in rows}
    ids: dict[str, str] = {}
    async for project in neon.projects.list():
        if project.name in ids:
            sys.exit(f"two projects have the name {project.name}; delete one of them")
        if project.name in regions:
            ids[project.name] = project.id
    for customer in regions.keys() - ids.keys():
        created = await neon.projects.create(name=customer, region_id=regions[customer])
        ids[customer] = created.project.id
    return ids


async def existing_results(
    neon: NeonClient, project_ids: Sequence[str], results: Path
) -> dict[tuple[str, str], Result]:
    """Return the last result of each branch that still exists."""
    existing: set[str] = set()
    for project_id in project_ids:
        existing |= {branch.id async for branch in neon.branches.list(project_id)}
    return {
        (result.project_id, result.branch): result
        for result in await asyncio.to_thread(read_results, results)
        if result.branch_id in existing
    }


async def provision(
    neon: NeonClient, project_id: str, row: Row, result: Result | None, results: Path
) -> None:
    """Create a branch and wait until it is ready; continue the work of an earlier run."""
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
    """Provision all branches; return 0 if all of them are ready."""
    async with connect(results.with_name(f"{results.name}.db"), failures) as neon:
        projects = await open_projects(neon, rows)
        created = await existing_results(neon, list(projects.values()), results)
        print(f"at {neon.base_url}: {len(created)} branches exist already", flush=True)
        places = [(projects[row.customer], row) for row in rows]
        outcomes = await asyncio.gather(
            *(
                provision(neon, project_id, row, created.get((project_id, row.branch)), results)
                for project_id, row in places
            ),
            return_exceptions=True,  # a failure does not cancel the other branches
        )
        print(f"{neon.requests_sent} requests sent")
    for row, outcome in zip(rows, outcomes, strict=True):
        if isinstance(outcome, NeonError):
            print(f"{row} is not ready: {outcome}")
        elif outcome is not None:
            raise outcome
    print(f"{outcomes.count(None)} of {len(rows)} branches are ready")
    return 0 if outcomes.count(None) == len(rows) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Create branches; continue after a kill.")
    parser.add_argument("csv", nargs="?", type=Path, default=SAMPLE, metavar="CSV")
    parser.add_argument("--results", type=Path, default=Path("fleet.jsonl"), metavar="FILE")
    parser.add_argument("--fail", type=int, default=0, metavar="N")
    arguments = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(read_rows(arguments.csv), arguments.results, arguments.fail)))
    except (NeonError, OSError, msgspec.ValidationError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        print("interrupted; run the program again to continue", file=sys.stderr)
        sys.exit(130)
