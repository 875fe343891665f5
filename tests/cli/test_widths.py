"""Lists on terminals of different widths, in a pipe, and as CSV."""

import csv
import re
from collections.abc import Callable

import pytest

from tests.cli.conftest import CommandLine
from tests.cli.served import Served

Terminal = Callable[[int], None]
LONG = "preview-of-a-feature-with-a-long-name"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Return a function that lets standard output be a terminal of this width."""
    return lambda width: monkeypatch.setattr("neonctl_async.cli.output._width", lambda: width)


@pytest.fixture(scope="module")
def project(quick: Served) -> str:
    """Return the id of a project with a branch, and a branch of that branch."""
    id = quick.project().project.id
    child = quick.branch(id, LONG).branch.id
    quick.run(lambda neon: neon.branches.create(id, name="below", parent_id=child, endpoints=[]))
    return id


@pytest.mark.parametrize("no_color", [{}, {"NO_COLOR": "1"}])
@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize(
    ("command", "state", "title"),
    [
        ("operations", "OK", "Status"),
        ("endpoints", "active", "State"),
        ("branches", "ready", "State"),
    ],
)
def test_list_fits_the_terminal_and_shows_every_state(
    cli: CommandLine,
    quick: Served,
    project: str,
    terminal: Terminal,
    command: str,
    state: str,
    title: str,
    width: int,
    no_color: dict[str, str],
) -> None:
    terminal(width)
    colours = {"FORCE_COLOR": "1", "TERM": "xterm", **no_color}
    result = cli(command, "list", "-p", project, at=quick, **colours)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout)
    assert (plain == result.stdout) == bool(no_color)
    header, *rows = plain.splitlines()
    assert max(map(len, (header, *rows))) <= width
    assert title in header.split()
    assert all(state in row.split() for row in rows)


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (60, "Operation Status Date Duration Branch"),
        (80, "ID Operation Status Date"),
        (110, "ID Operation Status Date Duration Branch"),
        (140, "ID Operation Status Date Duration Branch Compute"),
    ],
)
def test_columns_that_are_left_out_are_named(
    cli: CommandLine, quick: Served, terminal: Terminal, width: int, shown: str
) -> None:
    terminal(width)
    result = cli("operations", "list", "-p", quick.project().project.id, at=quick)
    assert result.stdout.splitlines()[0].split() == shown.split()
    titles = ["ID", "Operation", "Status", "Date", "Duration", "Branch", "Compute"]
    missing = ", ".join(title for title in titles if title not in shown.split())
    note = f"left out at {width} columns: {missing}; --output csv has all\n"
    assert result.stderr == (note if missing else "")


def test_branches_are_a_tree_on_a_terminal_only(
    cli: CommandLine, quick: Served, project: str, terminal: Terminal
) -> None:
    piped = cli("branches", "list", "-p", project, "--columns", "name,parent", at=quick)
    assert sorted(line.split() for line in piped.stdout.splitlines()[1:]) == [
        ["below", LONG],
        ["main"],
        [LONG, "main"],
    ]
    terminal(120)
    shown = cli("branches", "list", "-p", project, at=quick).stdout
    names = [re.split("  +", line, maxsplit=1)[1][: len(LONG) + 2] for line in shown.splitlines()]
    assert names[1].startswith("main ")
    assert names[2] == f"└ {LONG}"
    assert "Parent" not in shown
    assert re.search(r"    └ below ", shown)
    chosen = cli("branches", "list", "-p", project, "--columns", "name,parent", at=quick)
    assert chosen.stdout == piped.stdout


@pytest.mark.parametrize("command", ["databases", "endpoints", "operations", "roles"])
def test_branch_is_named_as_commands_take_it(
    cli: CommandLine, quick: Served, project: str, command: str
) -> None:
    result = cli(command, "list", "-p", project, "--columns", "branch", at=quick)
    assert "main" in result.stdout.splitlines()
    assert "br-" not in result.stdout


def test_parent_that_is_not_listed_has_its_id(
    cli: CommandLine, quick: Served, project: str, terminal: Terminal
) -> None:
    terminal(120)
    arguments = ("branches", "list", "-p", project, "--search", "below")
    header, row = cli(*arguments, at=quick).stdout.splitlines()
    assert header.split()[-1] == "Parent"
    assert row.split()[-1].startswith("br-")


@pytest.mark.parametrize("command", ["operations", "endpoints", "branches", "projects"])
def test_pipe_and_csv_have_every_column(
    cli: CommandLine, quick: Served, project: str, command: str
) -> None:
    of = () if command == "projects" else ("-p", project)
    piped = cli(command, "list", *of, at=quick).stdout.splitlines()[0]
    result = cli(command, "list", *of, "-o", "csv", at=quick)
    header, *rows = csv.reader(result.stdout.splitlines())
    assert piped.split() == header
    assert rows
    assert all(len(row) == len(header) for row in rows)


def test_csv_has_full_texts_and_times_in_utc(cli: CommandLine, quick: Served, project: str) -> None:
    columns = ("--columns", "created,name")
    result = cli("branches", "list", "-p", project, "-o", "csv", *columns, at=quick)
    header, *rows = csv.reader(result.stdout.splitlines())
    assert header == ["Created", "Name"]
    assert {name for _, name in rows} == {"main", LONG, "below"}
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT[\d:.]+Z", time) for time, _ in rows)


def test_csv_of_a_stream_has_one_header(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    ids = [one.id for one in created.operations]
    watched = ("operations", "watch", *ids, "-p", created.project.id, "-o", "csv")
    rows = list(csv.DictReader(cli(*watched, at=quick).stdout.splitlines()))
    assert {row["ID"] for row in rows} == set(ids)
    assert len(rows) == len(ids)


def test_csv_of_one_record_hides_its_password(cli: CommandLine, quick: Served) -> None:
    created = ("projects", "create", "--name", "a,b", "-o", "csv")
    [row] = csv.DictReader(cli(*created, at=quick).stdout.splitlines())
    assert row["Name"] == "a,b"
    assert row["Connection URI"] == "********** (--show-secrets shows it)"
