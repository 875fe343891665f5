"""The report of a run: JSON, and the tables and plots made from it."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.harness.machine import Machine
from benchmarks.harness.results import CLIENTS, LATENESS, OURS, REQUESTS, Row, Spread, format_number
from benchmarks.plots import comparison, waits

BEGIN = "<!-- figures: written by make bench -->"
END = "<!-- end of figures -->"
TARGETS = ("target", "measured as", "result", "limit", "")
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
    ("1,000 operations in 1 project", LATENESS): "… lateness, s",
    ("1,000 operations in 1 project, 50 ms away", LATENESS): "… lateness, round trip of 50 ms, s",
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


def target_lines(row: Row) -> Iterator[tuple[str, ...]]:
    """Yield one table line per target of the row."""
    for target in row.targets:
        yield (
            f"{row.scenario}: {row.measure}",
            f"ratio to {target.relative_to}" if target.relative_to else row.unit,
            format_number(row.measured(target).median),
            f"≤ {target.limit:g}",
            "met" if row.meets(target) else "**MISSED**",
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
    """Return the tables for the documentation, with the machine and the versions."""
    versions = ", ".join(f"`{name} {version}`" for name, version in report.versions.items())
    notes = [f"- {row.scenario}: {row.note}" for row in report.rows if row.note]
    return "\n".join(
        [
            f"Measured on {report.date}: {report.machine}. Versions: {versions}.",
            "",
            "### Targets",
            "",
            *_table(TARGETS, (line for row in report.rows for line in target_lines(row))),
            "",
            "### All results",
            "",
            *_table(COLUMNS, (line for row in report.rows for line in result_lines(row))),
            *(["", *notes] if notes else []),
        ]
    )


def _table(head: Sequence[str], lines: Iterable[Sequence[str]], *, texts: int = 2) -> Iterator[str]:
    """Yield a Markdown table whose first columns are texts."""
    alignment = ["---"] * texts + ["---:"] * (len(head) - texts)
    return ("| " + " | ".join(line) + " |" for line in [head, alignment, *lines])


def brief(report: Report) -> str:
    """Return the table for the README: one line per row, one column per client."""
    by_name = {(row.scenario, row.measure): row for row in report.rows}
    lines = ((title, *_medians(by_name[name])) for name, title in IN_README.items())
    head = ("", *CLIENTS)
    source = f"Medians of one run on {report.date}: {report.machine}."
    return "\n".join([*_table(head, lines, texts=1), "", source])


def _medians(row: Row) -> list[str]:
    """Return the median of each client; a hyphen if it did not take part."""
    return [
        format_number(row.spreads[name].median) if name in row.spreads else "-" for name in CLIENTS
    ]


def written_into(page: str, text: str) -> str:
    """Return the page with this text between its markers."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def merged(old: Report, new: Report) -> Report:
    """Return the new report with the rows that only the old one has.

    Without these if their date, machine or versions differ.
    """
    if (old.date, old.machine, old.versions) != (new.date, new.machine, new.versions):
        return new
    rows = {(row.scenario, row.measure): row for row in [*old.rows, *new.rows]}
    return msgspec.structs.replace(new, rows=list(rows.values()))


def write(report: Report, root: Path, *, complete: bool) -> None:
    """Write the report as JSON, the tables of two pages, and the plots."""
    docs = root / "docs"
    report = _write_json(report, docs / "benchmarks.json", complete=complete)
    for name, plot in (("benchmarks", comparison), ("waits", waits)):
        path = docs / "pictures" / f"{name}.svg"
        path.write_text(plot.draw(report.rows), encoding="utf-8")
    for page, text in (
        (docs / "benchmarks.md", markdown(report)),
        (root / "README.md", brief(report)),
    ):
        page.write_text(written_into(page.read_text(encoding="utf-8"), text), encoding="utf-8")


def write_databases(report: Report, root: Path, *, complete: bool) -> None:
    """Write the report of the databases as JSON, and the tables of its page."""
    _write_page(report, root / "docs" / "benchmarks-databases.md", complete=complete)


def write_startup(report: Report, root: Path, *, complete: bool) -> None:
    """Write the report of the start of programs as JSON, and the table of its page."""
    _write_page(report, root / "docs" / "benchmarks-startup.md", complete=complete)


def write_control_plane(report: Report, root: Path, *, complete: bool) -> None:
    """Write the report of the local control plane as JSON, and the table of its page."""
    _write_page(report, root / "docs" / "benchmarks-control-plane.md", complete=complete)


def _write_page(report: Report, page: Path, *, complete: bool) -> None:
    report = _write_json(report, page.with_suffix(".json"), complete=complete)
    text = written_into(page.read_text(encoding="utf-8"), markdown(report))
    page.write_text(text, encoding="utf-8")


def _write_json(report: Report, path: Path, *, complete: bool) -> Report:
    """Write a report, and return it. A report of some scenarios keeps the rows of the others."""
    if not complete and path.exists():
        report = merged(msgspec.json.decode(path.read_bytes(), type=Report), report)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    return report
