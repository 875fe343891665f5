"""The report of a run: JSON, and the tables made from it."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.harness.machine import Machine
from benchmarks.harness.results import (
    CLIENTS,
    LATENESS,
    OURS,
    REQUESTS,
    Row,
    Spread,
    Target,
    format_number,
)

END = "<!-- end of figures -->"
CLIENT = "benchmarks"
"""The name of the report that compares clients. README shows a part of it."""
ON_PAGE = ("measured", OURS, "others", "limit")
COLUMNS = (
    *("scenario", "client", "median", "quartiles"),
    *("ours / theirs", "quartiles", "limit", ""),
)

IN_README = {
    ("GET", "one after another"): "one GET, ms",
    ("50 GETs", "concurrent"): "50 concurrent GETs, ms",
    ("page of 1,000 operations", "fetched and decoded"): "page of 1,000 operations, ms",
    ("100,000 operations in memory", "resident memory"): "100,000 operations in memory, MB",
    ("1,000 operations in 1 project", REQUESTS): "waiting for 1,000 operations, requests",
    ("1,000 operations in 1 project", LATENESS): "… lateness, round trip of 50 ms, s",
}
"""The scenario and measure of each shown row, and its title in the README."""


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
    source = f"Medians of {report.date}: {report.machine}. Versions: {versions}."
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


def brief(report: Report) -> str:
    """Return the table for the README: one line per row, one column per client."""
    by_name = {(row.scenario, row.measure): row for row in report.rows}
    lines = ((title, *_medians(by_name[name])) for name, title in IN_README.items())
    head = ("", *CLIENTS)
    source = f"Medians of one run on {report.date}: {report.machine}."
    return "\n".join([*_table(head, lines), "", source])


def _medians(row: Row) -> list[str]:
    """Return the median of each client; a hyphen if it did not take part."""
    return [
        format_number(row.spreads[name].median) if name in row.spreads else "-" for name in CLIENTS
    ]


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
    docs = root / "docs"
    report = _write_json(report, docs / f"{name}.json", complete=complete)
    _write_table(docs / "benchmarks.md", name, markdown(report))
    if name == CLIENT:
        _write_table(root / "README.md", name, brief(report))


def _write_table(page: Path, name: str, text: str) -> None:
    page.write_text(written_into(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")


def _write_json(report: Report, path: Path, *, complete: bool) -> Report:
    """Write a report, and return it. A report of some scenarios keeps the rows of the others."""
    if not complete and path.exists():
        report = merged(msgspec.json.decode(path.read_bytes(), type=Report), report)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    return report
