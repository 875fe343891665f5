"""Runs a command while its locks are sampled, and writes the report."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Final

import typer

from neonctl_async.cli.exits import ExitCode
from neonctl_async.cli.rehearsal.locks import LockTally
from neonctl_async.cli.rehearsal.observer import ObservationError, observing
from neonctl_async.cli.rehearsal.report import (
    Report,
    ReportBranch,
    as_json,
    as_markdown,
    without_secrets,
)
from neonctl_async.cli.rehearsal.tables import Relation, table_changes
from neonctl_async.cli.session import CommandSession
from neonctl_async.clock import loop_time, utc_now
from neonctl_async.errors import NeonError
from neonctl_async.models.branches import Branch
from neonctl_async.models.connection_uri import ConnectionUri

_FORMATS: Final = {".json": as_json, ".md": as_markdown}
PERIOD_SECONDS: Final = 0.005
"""The pause between two samples of locks. With a local server, sampling takes 3 % of a CPU in the
server and 7 % in this process; with a pause of 0.001, it takes 7 % and 13 %."""
_NO_STATISTICS: Final = "sessions of the command were still open, so numbers of rows may be too low"


def check_file(path: Path | None) -> Path | None:
    """Return the path of a report. Raises BadParameter unless it can be written."""
    if path is None:
        return None
    if path.suffix not in _FORMATS:
        raise typer.BadParameter(f"{str(path)!r} must end with .md or .json")
    target = path if path.exists() else path.parent
    if path.is_dir() or not os.access(target, os.W_OK):
        raise typer.BadParameter(f"{str(path)!r} cannot be written: choose another file")
    return path


async def rehearse(
    session: CommandSession,
    branch: Branch,
    uri: ConnectionUri,
    run: Callable[[], Coroutine[None, None, int]],
    file: Path,
    program: str,
) -> int:
    """Run a command on a branch, and write the report. Return the exit status.

    The report lists what could not be observed; this does not change the exit status. If the file
    cannot be written, returns OUTPUT_ERROR instead of 0.
    """
    recording = _Recording(uri)
    started_at = utc_now()
    status = await recording.run(run)
    await recording.read_changes()
    before, after = recording.before, recording.after
    names = {oid: relation.name for oid, relation in (after | before).items()}
    report = Report(
        program=program,
        exit_status=status,
        started_at=started_at,
        duration_seconds=round(recording.seconds, 3),
        project_id=branch.project_id,
        branch=ReportBranch(id=branch.id, name=branch.name, parent_id=branch.parent_id),
        database=uri.database,
        samples=recording.tally.samples,
        longest_gap_seconds=round(recording.tally.longest_gap, 3),
        locks=recording.tally.held({oid: name for oid, name in names.items() if oid in before}),
        lock_waits=recording.tally.waits(names),
        tables=table_changes(before, after) if recording.is_complete else None,
        schema_diff=await _schema_diff(session, branch, uri, recording.problems),
        problems=recording.problems,
    )
    text = _FORMATS[file.suffix](report)
    try:
        await asyncio.to_thread(file.write_text, text, encoding="utf-8")
    except OSError as error:
        message = f"error: the report {file} cannot be written: {error.strerror}"
        session.screen.print_message(message, "bold red")
        return status or ExitCode.OUTPUT_ERROR
    return status


async def _schema_diff(
    session: CommandSession, branch: Branch, uri: ConnectionUri, problems: list[str]
) -> str | None:
    """Return the difference from the parent's current schema; None if the comparison fails."""
    try:
        compared = await session.neon.branches.compare_schema(
            branch.project_id, branch.id, db_name=uri.database
        )
    except NeonError as error:
        problems.append(f"the schemas were not compared: {error}")
        return None
    return without_secrets(compared.diff or "", uri.password)


class _Recording:
    """The observations made while the command ran."""

    def __init__(self, uri: ConnectionUri) -> None:
        self._uri = uri
        self.tally = LockTally()
        self.before: dict[int, Relation] = {}
        self.after: dict[int, Relation] = {}
        self.is_complete = False
        """True if the tables were read before and after the command."""
        self.problems: list[str] = []
        self.seconds = 0.0
        """The duration of the command."""

    async def run(self, run: Callable[[], Coroutine[None, None, int]]) -> int:
        """Run the command while sampling locks. Return its exit status."""
        ready, stop = asyncio.Event(), asyncio.Event()
        sampling = asyncio.create_task(self._sample(ready, stop))
        try:
            await ready.wait()
            started = loop_time()
            status = await run()
            self.seconds = loop_time() - started
        except BaseException:
            sampling.cancel()
            raise
        finally:
            stop.set()
            await asyncio.wait([sampling])
        await sampling
        return status

    async def read_changes(self) -> None:
        """Read the tables again, after the command."""
        try:
            async with observing(self._uri) as observer:
                if not await observer.wait_for_statistics():
                    self.problems.append(_NO_STATISTICS)
                self.after = await observer.relations()
        except ObservationError as error:
            self.problems.append(f"changes of tables are missing: {error}")
            self.is_complete = False

    async def _sample(self, ready: asyncio.Event, stop: asyncio.Event) -> None:
        try:
            async with observing(self._uri) as observer:
                self.before = await observer.relations()
                self.is_complete = True
                await observer.sample_locks(self.tally)
                ready.set()
                while not stop.is_set():
                    with suppress(TimeoutError):
                        await asyncio.wait_for(stop.wait(), PERIOD_SECONDS)
                    await observer.sample_locks(self.tally)
        except ObservationError as error:
            missing = "later locks" if self.is_complete else "locks and changes of tables"
            self.problems.append(f"{missing} are missing: {error}")
        finally:
            self.tally.finish()
            ready.set()
