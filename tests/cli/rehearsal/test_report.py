"""A report as Markdown and JSON."""

import json
from datetime import UTC, datetime

from msgspec.structs import replace

from neonctl_async.cli.rehearsal.locks import HeldLock, LockWait
from neonctl_async.cli.rehearsal.report import (
    Report,
    ReportBranch,
    as_json,
    as_markdown,
    without_secrets,
)
from neonctl_async.cli.rehearsal.tables import TableChange
from neonctl_async.types import Secret

EMPTY = Report(
    program="alembic",
    exit_status=0,
    started_at=datetime(2026, 1, 31, 18, tzinfo=UTC),
    duration_seconds=1.5,
    project_id="late-frost-12345678",
    branch=ReportBranch(id="br-1", name="run-1", parent_id="br-0"),
    database="neondb",
    samples=200,
    longest_gap_seconds=0.012,
    locks=[],
    lock_waits=[],
    tables=[],
    schema_diff="",
    problems=[],
)
FULL = replace(
    EMPTY,
    locks=[
        HeldLock(
            relation='public."a|b"',
            mode="ACCESS EXCLUSIVE",
            blocks="reads and writes",
            transactions=1,
            longest_seconds=0.5,
        )
    ],
    lock_waits=[LockWait(waited_for="public.c", mode="ACCESS SHARE", waits=2, longest_seconds=0.4)],
    tables=[
        TableChange(table="public.c", change="", inserted=12345, updated=0, deleted=0),
        TableChange(table="public.d", change="dropped", inserted=None, updated=None, deleted=None),
    ],
    schema_diff="--- a/schema\n+++ b/schema\n+```\n",
    problems=["a line\nbreak"],
)


def test_empty_sections_say_so() -> None:
    text = as_markdown(EMPTY)
    assert text.startswith("# Rehearsal of `alembic`\n\n- Exit status: 0\n- Duration: 1.50 s\n")
    assert text.count("No sample shows one.") == 2
    assert "No table was changed." in text
    assert "The schema is that of the parent." in text
    assert "at most 0.012 s apart" in text
    incomplete = as_markdown(replace(EMPTY, schema_diff=None, tables=None))
    assert "The tables were not compared." in incomplete
    assert "The schemas were not compared." in incomplete


def test_markdown_shows_everything_and_no_text_leaves_its_place() -> None:
    lines = as_markdown(FULL).splitlines()
    for line in (
        "- **Incomplete:** a line\\nbreak",
        '| `public."a\\|b"` | ACCESS EXCLUSIVE | reads and writes | 1 | 0.500 |',
        "| `public.c` | ACCESS SHARE | 2 | 0.400 |",
        "| `public.c` | rows | 12,345 | 0 | 0 |",
        "| `public.d` | dropped | ? | ? | ? |",
    ):
        assert line in lines
    assert lines[lines.index("````diff") + 1 : lines.index("````")] == [
        "--- a/schema",
        "+++ b/schema",
        "+```",
    ]


def test_json_has_all_fields() -> None:
    report = json.loads(as_json(FULL))
    assert set(report) == set(Report.__struct_fields__)
    assert report["locks"][0]["mode"] == "ACCESS EXCLUSIVE"


def test_passwords_are_removed_from_a_schema_difference() -> None:
    diff = (
        "+    user 'ada', password 'o''clock'\n"
        "+CONNECTION 'host=db password=plain user=ada'\n"
        "+ DEFAULT 'postgresql://ada:plain@db/shop'\n"
        "+ -- of-the-branch"
    )
    hidden = without_secrets(diff, Secret("of-the-branch"))
    assert len(hidden.split("\n")) == 4
    for secret in ("clock", "plain", "of-the-branch"):
        assert secret not in hidden
    assert without_secrets("+ id integer", Secret("")) == "+ id integer"
