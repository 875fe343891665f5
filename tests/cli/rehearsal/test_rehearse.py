"""Reports of real migrations."""

import json
import os
import re
import shlex
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from neonctl_async.types import ProjectCreated
from neonctl_local import Durations, LocalControlPlane
from tests.cli.conftest import CommandLine
from tests.cli.served import Served, served
from tests.support.pages import TEXTS, code_blocks
from tests.support.postgres import skip_without_postgres
from tests.support.records import SECRETS

pytestmark = [pytest.mark.long, pytest.mark.postgres]

SETUP = """
CREATE TABLE customers (id int PRIMARY KEY);
CREATE TABLE orders (id int PRIMARY KEY, customer int, n int);
CREATE TABLE gone ();
INSERT INTO customers SELECT generate_series(1, 10);
INSERT INTO orders SELECT n, 1 + n % 10, n FROM generate_series(1, 100) AS n;
"""


@pytest.fixture(scope="module")
def real() -> Iterator[Served]:
    """A local control plane with real databases."""
    skip_without_postgres()
    with served(LocalControlPlane(durations=Durations(default=0), postgres=True)) as at:
        yield at


@pytest.fixture(scope="module")
def created(real: Served) -> ProjectCreated:
    """A project with tables."""
    project = real.project()
    with psycopg.connect(project.connection_uri.reveal()) as connection:
        connection.execute(SETUP.encode())
    return project


class Rehearsals:
    """Runs commands on branches of a project, with a report."""

    def __init__(self, cli: CommandLine, at: Served, created: ProjectCreated) -> None:
        self._cli = cli
        self._at = at
        self._project_id = created.project.id

    def json(self, *command: str) -> Any:
        """Return the report of a command as JSON."""
        return json.loads(self.run("--report", "report.json", "--", *command))

    def run(self, *options: str, status: int = 0) -> str:
        """Run ``branches run`` with a report. Return the report."""
        result = self._cli("branches", "run", "-p", self._project_id, *options, at=self._at)
        assert (result.exit_code, result.stderr) == (status, "")
        text = Path(options[options.index("--report") + 1]).read_text(encoding="utf-8")
        assert not SECRETS.search(text.encode())
        assert "postgresql://" not in text
        return text


@pytest.fixture
def rehearsals(cli: CommandLine, real: Served, created: ProjectCreated) -> Rehearsals:
    return Rehearsals(cli, real, created)


def python(text: str) -> tuple[str, ...]:
    """Return the command that runs a Python program."""
    Path("program.py").write_text(text, encoding="utf-8")
    return sys.executable, "program.py"


SQL = """
import os
import psycopg

with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
    for statement in {!r}.split(";"):
        connection.execute(statement)
"""


def test_report_shows_changed_rows_tables_and_schema(rehearsals: Rehearsals) -> None:
    statements = """
        INSERT INTO customers SELECT generate_series(11, 13);
        UPDATE orders SET n = 0 WHERE id <= 4;
        DELETE FROM orders WHERE id <= 2;
        ALTER TABLE orders ALTER customer TYPE bigint;
        DROP TABLE gone;
        CREATE TABLE bills (id int);
        INSERT INTO bills VALUES (1)
    """
    report = rehearsals.json(*python(SQL.format(statements)))
    assert [list(change.values()) for change in report["tables"]] == [
        ["public.bills", "created", 1, 0, 0],
        ["public.customers", "", 3, 0, 0],
        ["public.gone", "dropped", None, None, None],
        ["public.orders", "rewritten", 0, 4, 2],
    ]
    assert "\n+    customer bigint,\n" in report["schema_diff"]
    assert report["problems"] == []
    assert (report["program"], report["exit_status"]) == (Path(sys.executable).name, 0)


def test_failed_command_is_reported_too(rehearsals: Rehearsals) -> None:
    command = python(SQL.format("ALTER TABLE missing ADD x int"))
    text = rehearsals.run("--report", "report.md", "--", *command, status=1)
    assert "- Exit status: 1\n" in text
    assert "No table was changed." in text
    assert "The schema is that of the parent." in text


LOCKING = """
import json, os, threading, time
import psycopg

URI = os.environ["DATABASE_URL"]
TRANSACTIONS = [
    ["ALTER TABLE orders ALTER n TYPE bigint"],
    ["CREATE INDEX ON orders (customer)"],
    ["ALTER TABLE orders ADD FOREIGN KEY (customer) REFERENCES customers"],
    ["LOCK TABLE customers IN EXCLUSIVE MODE"],
    ["ANALYZE customers", "INSERT INTO customers VALUES (100)"],
    ["CREATE TABLE new (id int)", "ALTER TABLE new ADD n int"],
]
seen, hold = set(), {}

def watch(connection, pid):
    # Until the session of the rehearsal has read the locks twice since the call.
    queries = set()
    while len(queries) < 4:
        rows = connection.execute(
            "SELECT c.relname, l.mode FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation"
            " WHERE l.granted AND l.pid = %s AND c.relnamespace = 'public'::regnamespace", [pid]
        )
        seen.update(rows.fetchall())
        queries.update(connection.execute(
            "SELECT query_start FROM pg_stat_activity"
            " WHERE application_name = 'neonctl-async branches run' AND query LIKE '%pg_locks%'"
        ).fetchall())

def read_orders():
    with psycopg.connect(URI) as connection:
        connection.execute("SELECT count(*) FROM orders")

with psycopg.connect(URI) as locking, psycopg.connect(URI, autocommit=True) as watching:
    pid = locking.info.backend_pid
    for number, statements in enumerate(TRANSACTIONS):
        before = time.monotonic()
        for statement in statements:
            locking.execute(statement)
        held = time.monotonic()
        if number == 0:
            reader = threading.Thread(target=read_orders)
            reader.start()
            while not watching.execute("SELECT FROM pg_locks WHERE NOT granted").fetchall():
                time.sleep(0.01)
        watch(watching, pid)
        released = time.monotonic()
        locking.commit()
        if number == 0:
            reader.join()
            hold = {"least": released - held, "most": time.monotonic() - before}
with open("seen.json", "w") as file:
    json.dump({"seen": sorted(seen), **hold}, file)
"""
"""Takes locks, and samples them over another connection until the rehearsal has seen them too."""

WEAK = {"ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE"}


def test_locks_are_those_that_an_independent_sampler_sees(rehearsals: Rehearsals) -> None:
    report = rehearsals.json(*python(LOCKING))
    independent = json.loads(Path("seen.json").read_text(encoding="utf-8"))
    expected = {
        (relation, " ".join(re.findall("[A-Z][a-z]+", mode.removesuffix("Lock"))).upper())
        for relation, mode in independent["seen"]
        if relation != "new"
    }
    found = {
        (lock["relation"].removeprefix("public."), lock["mode"]): lock for lock in report["locks"]
    }
    created = {(relation, mode) for relation, mode in expected if relation.endswith("_idx")}
    assert set(found) == {one for one in expected - created if one[1] not in WEAK}
    assert {mode for _, mode in found} == {
        "ACCESS EXCLUSIVE",
        "EXCLUSIVE",
        "SHARE",
        "SHARE ROW EXCLUSIVE",
        "SHARE UPDATE EXCLUSIVE",
    }
    seconds = found["orders", "ACCESS EXCLUSIVE"]["longest_seconds"]
    rounding = 0.002
    least = independent["least"] - 2 * report["longest_gap_seconds"] - rounding
    assert least <= seconds <= independent["most"] + rounding
    [wait] = report["lock_waits"]
    assert (wait["waited_for"], wait["mode"]) == ("public.orders", "ACCESS SHARE")


UNTIL_LOCKS_WERE_READ = """
DO $$
DECLARE
    since timestamptz;
BEGIN
    FOR number IN 1..4 LOOP -- a query starts once to bind its values, and once to be executed
        since := clock_timestamp();
        WHILE clock_timestamp() < since + interval '30 s' AND NOT EXISTS (
            SELECT FROM pg_stat_activity WHERE query LIKE '%pg_locks%'
            AND application_name = 'neonctl-async branches run' AND query_start > since
        ) LOOP
            PERFORM pg_stat_clear_snapshot(), pg_sleep(0.01);
        END LOOP;
    END LOOP;
END $$
"""


def test_alembic(rehearsals: Rehearsals, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("migrations/versions").mkdir(parents=True)
    Path("alembic.ini").write_text("[alembic]\nscript_location = migrations\npath_separator = os\n")
    Path("migrations/env.py").write_text(
        "import os\n"
        "from alembic import context\n"
        "from sqlalchemy import create_engine, make_url\n"
        "url = make_url(os.environ['DATABASE_URL']).set(drivername='postgresql+psycopg')\n"
        "with create_engine(url).connect() as connection:\n"
        "    context.configure(connection=connection)\n"
        "    with context.begin_transaction():\n"
        "        context.run_migrations()\n"
    )
    Path("migrations/versions/one.py").write_text(
        "import sqlalchemy as sa\n"
        "from alembic import op\n"
        "revision, down_revision = '1', None\n"
        "def upgrade():\n"
        "    op.add_column('orders', sa.Column('note', sa.Text))\n"
        "    op.alter_column('orders', 'n', type_=sa.BigInteger)\n"
        f"    op.execute({UNTIL_LOCKS_WERE_READ!r})\n"
    )
    programs = sysconfig.get_path("scripts")
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    [(_, block)] = code_blocks(TEXTS["docs/command-line.md"], 'console title="A rehearsal"')
    program, *arguments = shlex.split(block.removeprefix("$ "))
    assert (program, *arguments[:2]) == ("neonctl-async", "branches", "run")
    report = rehearsals.run(*arguments[2:])
    assert report.startswith("# Rehearsal of `alembic`\n")
    assert "| `public.alembic_version` | created | 1 | 0 | 0 |\n" in report
    assert "| `public.orders` | rewritten | 0 | 0 | 0 |\n" in report
    assert "| `public.orders` | ACCESS EXCLUSIVE | reads and writes | 1 |" in report
    assert "\n+    note text\n" in report


def test_django(rehearsals: Rehearsals) -> None:
    Path("settings.py").write_text(
        "import os\n"
        "from neonctl_async.types import ConnectionUri\n"
        "DATABASES = {'default': ConnectionUri(os.environ['DATABASE_URL']).django}\n"
        "INSTALLED_APPS = ['django.contrib.contenttypes']\n"
    )
    migrate = (sys.executable, "-m", "django", "migrate", "--settings", "settings")
    report = rehearsals.json(*migrate, "--pythonpath", f"{Path.cwd()}", "--verbosity", "0")
    tables = {one["table"]: one for one in report["tables"]}
    assert tables["public.django_migrations"]["inserted"] == 2
    assert tables["public.django_content_type"]["change"] == "created"
    assert "CREATE TABLE public.django_content_type" in report["schema_diff"]


def test_lost_connection_makes_the_report_incomplete(rehearsals: Rehearsals) -> None:
    end_others = (
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE application_name = 'neonctl-async branches run';"
        "INSERT INTO customers VALUES (50)"
    )
    report = rehearsals.json(*python(SQL.format(end_others)))
    [problem] = report["problems"]
    assert problem.startswith("later locks are missing: ")
    assert [(one["table"], one["inserted"]) for one in report["tables"]] == [
        ("public.customers", 1)
    ]


def test_report_that_cannot_be_written_is_an_error(
    cli: CommandLine, real: Served, created: ProjectCreated
) -> None:
    Path("reports").mkdir()
    run = ("branches", "run", "-p", created.project.id, "--report", "reports/report.md", "--")
    result = cli(*run, "rm", "-r", "reports", at=real)
    assert "error: the report reports/report.md cannot be written: No such file" in result.stderr
    assert result.exit_code == 74
