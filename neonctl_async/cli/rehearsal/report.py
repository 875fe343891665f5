"""The report of a rehearsal, as JSON or Markdown. Pure: no I/O."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

import msgspec

from neonctl_async.cli.labels import printable
from neonctl_async.cli.rehearsal.locks import HeldLock, LockWait
from neonctl_async.cli.rehearsal.tables import TableChange
from neonctl_async.models.secret import HIDDEN, Secret
from neonctl_async.transport.redaction import hide_secrets

_IN_SQL: Final = r"(?i)(\bpassword\s{1,8}E?')(?:[^']|'')*"
"""A password in SQL, such as that of a user mapping or a role."""


class ReportBranch(msgspec.Struct, frozen=True, kw_only=True):
    """The branch on which the command ran."""

    id: str
    name: str
    parent_id: str | None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a command did to a database, without secrets and without the command's arguments."""

    program: str
    exit_status: int
    started_at: datetime
    duration_seconds: float
    project_id: str
    branch: ReportBranch
    database: str
    samples: int
    """The number of times that the locks were read."""
    longest_gap_seconds: float
    """The longest time between two samples."""
    locks: list[HeldLock]
    lock_waits: list[LockWait]
    tables: list[TableChange] | None
    """None if the tables could not be compared."""
    schema_diff: str | None
    """A unified diff; None if the schemas could not be compared."""
    problems: list[str]
    """What is missing from the report, and why."""


_LIMITS: Final = """\
- Locks are sampled. A lock that was held for less than the longest time between two samples may be
  missing. The times of locks are lower bounds, too short by at most two such times.
- Only locks on tables, indexes, views and sequences that existed before the command are listed.
  They block others on a database in use, even if nobody used the branch.
- Numbers of rows are Postgres's statistics. They include rows of transactions that were rolled
  back, but neither rows that TRUNCATE removed nor those of dropped tables.
- A table counts as rewritten if it is stored in a new file. TRUNCATE has the same effect.
"""
"""The accuracy of each part of a report, in Markdown."""


def without_secrets(diff: str, password: Secret) -> str:
    """Return a schema difference with asterisks in place of passwords."""
    sought = password or Secret(HIDDEN)  # an empty string would be found everywhere
    return "\n".join(
        re.sub(_IN_SQL, rf"\1{HIDDEN}", hide_secrets(line, sought)) for line in diff.split("\n")
    )


def as_json(report: Report) -> str:
    """Return a report as JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"


def as_markdown(report: Report) -> str:
    """Return a report as Markdown, for example for a comment on a pull request."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    branch = report.branch
    yield f"# Rehearsal of {_code(report.program)}"
    yield ""
    parent = f", a child of {_code(branch.parent_id)}" if branch.parent_id else ""
    yield f"- Exit status: {report.exit_status}"
    yield f"- Duration: {report.duration_seconds:.2f} s"
    yield f"- Start: {report.started_at:%Y-%m-%d %H:%M:%S} UTC"
    yield f"- Branch: {_code(branch.name)} ({_code(branch.id)}){parent}"
    yield f"- Database: {_code(report.database)}"
    yield from (f"- **Incomplete:** {printable(problem)}" for problem in report.problems)
    yield from _section("Locks that block others", _locks(report.locks), "No sample shows one.")
    yield from _section("Waits for locks", _waits(report.lock_waits), "No sample shows one.")
    yield from _section("Tables", _tables(report.tables), "No table was changed.")
    yield from _section("Schema", _diff(report.schema_diff), "The schema is that of the parent.")
    gap = f"at most {report.longest_gap_seconds:.3f} s apart"
    read = f"- The locks were read {report.samples} times, {gap}."
    yield from _section("How exact this is", [read, *_LIMITS.splitlines()], "")


def _section(title: str, lines: Sequence[str], empty: str) -> Iterator[str]:
    yield from ("", f"## {title}", "")
    yield from lines or [empty]


def _locks(locks: Sequence[HeldLock]) -> list[str]:
    rows = [
        f"| {_code(lock.relation)} | {lock.mode} | {lock.blocks} | {lock.transactions} "
        f"| {lock.longest_seconds:.3f} |"
        for lock in locks
    ]
    return _table(
        ["Relation", "Lock", "Blocks", "Transactions", "Longest, in seconds (at least)"], rows
    )


def _waits(waits: Sequence[LockWait]) -> list[str]:
    rows = [
        f"| {_code(wait.waited_for)} | {wait.mode} | {wait.waits} | {wait.longest_seconds:.3f} |"
        for wait in waits
    ]
    return _table(["Waited for", "Lock", "Waits", "Longest, in seconds (at least)"], rows)


def _tables(tables: Sequence[TableChange] | None) -> list[str]:
    if tables is None:
        return ["The tables were not compared."]
    rows = [
        f"| {_code(one.table)} | {one.change or 'rows'} | {_number(one.inserted)} "
        f"| {_number(one.updated)} | {_number(one.deleted)} |"
        for one in tables
    ]
    return _table(["Table", "Change", "Inserted", "Updated", "Deleted"], rows)


def _number(rows: int | None) -> str:
    return "?" if rows is None else f"{rows:,}"


def _table(titles: Sequence[str], rows: Sequence[str]) -> list[str]:
    if not rows:
        return []
    return [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}", *rows]


def _diff(diff: str | None) -> list[str]:
    if diff is None:
        return ["The schemas were not compared."]
    if not diff:
        return []
    fence = _fence(diff, 3)
    return [f"{fence}diff", *diff.rstrip("\n").split("\n"), fence]


def _code(text: str) -> str:
    """Return a string as Markdown code that is safe in a table cell."""
    text = printable(text)
    fence = _fence(text, 1)
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|")


def _fence(text: str, least: int) -> str:
    """Return a run of backticks longer than any run in the text."""
    return "`" * max([least, *(len(found) + 1 for found in re.findall("`+", text))])
