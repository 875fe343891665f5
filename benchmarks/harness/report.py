"""The report of a run: JSON, and the tables made from it."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.harness.machine import Machine
from benchmarks.harness.results import (
    GATHERED,
    LATENESS,
    NEON_SDK,
    OURS,
    PYTEST_POSTGRESQL,
    REQUESTS,
    Row,
    Spread,
    Target,
    format_number,
)

END = "<!-- end of figures -->"
RESULTS = Path("benchmarks", "results")
"""The folder of the reports as JSON, with all rows, quartiles and ratios."""
CLIENT = "benchmarks"
"""The name of the report that compares clients, and of the table in the README."""
ON_PAGE = ("measured", OURS, "others", "limit")
COLUMNS = (
    *("scenario", "client", "median", "quartiles"),
    *("ours / theirs", "quartiles", "limit", ""),
)

LIMITED = "300 branches under rate limits"
SUITE = "200 tests with a database each"
SCRIPT = "one script, two operations, 50 ms away"
IN_README: Sequence[tuple[str, Sequence[tuple[str, str]], Sequence[str]]] = (
    (
        "300 branches in 150 projects, under rate limits: refused requests",
        [(LIMITED, "maximum responses of 429")],
        [GATHERED, NEON_SDK],
    ),
    (
        "… calls that do not report what became of the branch",
        [(LIMITED, "maximum unknown outcomes")],
        [GATHERED, NEON_SDK],
    ),
    (
        "one branch, ready after 5 s: noticed late by, requests",
        [(SCRIPT, f"{LATENESS}, 5 s"), (SCRIPT, f"{REQUESTS}, 5 s")],
        [GATHERED, NEON_SDK],
    ),
    (f"{SUITE}, one worker", [(SUITE, "whole run, one worker")], [PYTEST_POSTGRESQL]),
    (f"{SUITE}, two workers", [(SUITE, "whole run, two workers")], [PYTEST_POSTGRESQL]),
)
"""The title of each row of the README, its scenarios and measures, and the other clients."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a run, with its date, machine and software versions."""

    date: str
    machine: Machine
    versions: dict[str, str]
    rows: list[Row]


def result_lines(row: Row) -> Iterator[tuple[str, ...]]:
    """Yield one table line per client of the row, ours first."""
    targets = {target.relative_to or OURS: target for target in row.targets}
    title = f"{row.scenario}: {row.measure}, {row.unit}"
    for client in sorted(row.spreads, key=lambda name: name != OURS):
        ratio = row.ratios.get(client)
        target = targets.get(client)
        yield (
            title if client == OURS else "",
            client,
            format_number(row.spreads[client].median),
            quartiles(row.spreads[client]),
            format_number(ratio.median) if ratio else "",
            quartiles(ratio) if ratio else "",
            f"≤ {target.limit:g}" if target else "",
            ("met" if row.meets(target) else "MISSED") if target else "",
        )


def quartiles(spread: Spread) -> str:
    """Return the quartiles as text; a single value has none."""
    if spread.count == 1:
        return ""
    return f"{format_number(spread.low)} to {format_number(spread.high)}"


def plain(rows: Sequence[Row]) -> str:
    """Return the table for a terminal."""
    table = [COLUMNS, *(line for row in rows for line in result_lines(row))]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    text = [
        "  ".join(
            cell.ljust(width) if n < 2 else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    ]
    return "\n".join([*text, *(f"{row.scenario}: {row.note}" for row in rows if row.note)])


def markdown(report: Report) -> str:
    """Return the tables for the documentation, with the machine and the versions.

    The first has one line per row, without the rows in which every client has the value 0. Rows
    with columns have a table per scenario.
    """
    versions = ", ".join(f"`{name} {version}`" for name, version in report.versions.items())
    shown = [
        row
        for row in report.rows
        if not row.column and any(each.median for each in row.spreads.values())
    ]
    source = f"Medians, measured on {report.date}: {report.machine}. Versions: {versions}."
    grids = _grids([row for row in report.rows if row.column])
    return "\n".join([*_table(ON_PAGE, map(_page_line, shown)), *grids, "", source])


def _grids(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a table for each scenario: a line per client, whose cells have the measures."""
    for scenario in dict.fromkeys(row.scenario for row in rows):
        own = [row for row in rows if row.scenario == scenario]
        columns = list(dict.fromkeys(row.column for row in own))
        lines = [
            [
                client,
                *(
                    ", ".join(_cell(row, client) for row in own if row.column == column)
                    for column in columns
                ),
            ]
            for client in dict.fromkeys(client for row in own for client in row.spreads)
        ]
        yield ""
        yield from _table([f"{scenario}: {LATENESS}, {REQUESTS}", *columns], lines)


def _cell(row: Row, client: str) -> str:
    """Return the value of a client, in bold if it misses a target."""
    text = format_number(row.spreads[client].median) + (" s" if row.unit == "s" else "")
    return f"**{text}**" if client == OURS and row.met is False else text


def _page_line(row: Row) -> tuple[str, ...]:
    others = (
        f"{client} {format_number(spread.median)}"
        for client, spread in row.spreads.items()
        if client != OURS
    )
    return (
        f"{row.scenario}: {row.measure}, {row.unit}",
        format_number(row.spreads[OURS].median),
        "; ".join(others),
        "; ".join(_limit(row, target) for target in row.targets),
    )


def _limit(row: Row, target: Target) -> str:
    """Return a limit, and by how much it is missed."""
    unit = f" times {target.relative_to}" if target.relative_to else ""
    missed = "" if row.meets(target) else f": **{format_number(row.measured(target).median)}**"
    return f"≤ {target.limit:g}{unit}{missed}"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a Markdown table."""
    alignment = ["---", *["---:"] * (len(head) - 1)]
    return ("| " + " | ".join(line) + " |" for line in [head, alignment, *lines])


def brief(reports: Iterable[Report]) -> str:
    """Return the table for the README, without what has not been measured."""
    by_name = {(row.scenario, row.measure): row for report in reports for row in report.rows}

    def cells(measures: Sequence[tuple[str, str]], client: str) -> str:
        return ", ".join(_cell(by_name[name], client) for name in measures)

    lines = (
        (
            title,
            cells(names, OURS),
            "; ".join(
                f"{each} {cells(names, each)}"
                for each in others
                if all(each in by_name[name].spreads for name in names)
            ),
        )
        for title, names, others in IN_README
        if by_name.keys() >= {*names}
    )
    return "\n".join(_table(("", OURS, "others"), lines))


def written_into(page: str, name: str, text: str) -> str:
    """Return the page with this text between the markers of a report."""
    begin = f"<!-- {name}: written by make bench -->"
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(END)
    return f"{before}{begin}\n\n{text}\n\n{END}{after}"


def merged(old: Report, new: Report) -> Report:
    """Return the new report with the rows that only the old one has.

    Without these if their date, machine or versions differ.
    """
    if (old.date, old.machine, old.versions) != (new.date, new.machine, new.versions):
        return new
    rows = {(row.scenario, row.measure): row for row in [*old.rows, *new.rows]}
    return msgspec.structs.replace(new, rows=list(rows.values()))


def write(report: Report, root: Path, name: str, *, complete: bool) -> None:
    """Write a report as JSON, and the tables that show it."""
    report = _write_json(report, root / RESULTS / f"{name}.json", complete=complete)
    _write_table(root / "docs" / "benchmarks.md", name, markdown(report))
    _write_table(root / "README.md", CLIENT, brief(read(path) for path in reports(root)))


def reports(root: Path) -> Iterable[Path]:
    """Return the files of all reports."""
    return sorted((root / RESULTS).glob("*.json"))


def read(path: Path) -> Report:
    """Return the report in a file."""
    return msgspec.json.decode(path.read_bytes(), type=Report)


def _write_table(page: Path, name: str, text: str) -> None:
    page.write_text(written_into(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")


def _write_json(report: Report, path: Path, *, complete: bool) -> Report:
    """Write a report, and return it. A report of some scenarios keeps the rows of the others."""
    if not complete and path.exists():
        report = merged(read(path), report)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    return report
