"""A run of the benchmarks, as it is kept: JSON, and the same as a table."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.harness.machine import Machine
from benchmarks.harness.results import OURS, Row, Spread, number
from benchmarks.harness.summary import summary
from benchmarks.plots.comparison import draw
from benchmarks.plots.waits import draw_waits

BEGIN = "<!-- figures: written by make bench -->"
END = "<!-- end of figures -->"
TARGETS = ("target", "as", "found", "at most", "")
COLUMNS = ("scenario", "contender", "median", "quartiles", "ours / its", "quartiles", "target", "")


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured when, on what, and with which versions."""

    date: str
    machine: Machine
    versions: dict[str, str]
    rows: list[Row]


def lines(row: Row) -> Iterator[tuple[str, ...]]:
    """The row as lines of the table, one a contender, ours first."""
    bounds = {target.by or OURS: target for target in row.targets}
    title = f"{row.scenario}: {row.measure}, {row.unit}"
    for contender in sorted(row.spreads, key=lambda name: name != OURS):
        ratio = row.ratios.get(contender)
        target = bounds.get(contender)
        yield (
            title if contender == OURS else "",
            contender,
            number(row.spreads[contender].median),
            quartiles(row.spreads[contender]),
            number(ratio.median) if ratio else "",
            quartiles(ratio) if ratio else "",
            f"≤ {target.most:g}" if target else "",
            ("met" if row.meets(target) else "MISSED") if target else "",
        )


def targets(row: Row) -> Iterator[tuple[str, ...]]:
    """A line for each target of the row: what it is, what was found, and whether it is met."""
    for target in row.targets:
        found = row.ratios[target.by] if target.by else row.spreads[OURS]
        yield (
            f"{row.scenario}: {row.measure}",
            f"times {target.by}" if target.by else row.unit,
            number(found.median),
            f"≤ {target.most:g}",
            "met" if row.meets(target) else "**MISSED**",
        )


def plain(rows: Sequence[Row]) -> str:
    """The table for a terminal."""
    table = [COLUMNS, *(line for row in rows for line in lines(row))]
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
    """The table for the documentation, with what it was measured on."""
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    table = [COLUMNS, ("---", "---", *["---:"] * (len(COLUMNS) - 2))]
    table += [line for row in report.rows for line in lines(row)]
    notes = [f"- {row.scenario}: {row.note}" for row in report.rows if row.note]
    promised: list[tuple[str, ...]] = [TARGETS, ("---", "---", "---:", "---:", "---")]
    promised += [line for row in report.rows for line in targets(row)]
    return "\n".join(
        [
            f"Measured on {report.date}: {report.machine}. {versions}.",
            "",
            *("| " + " | ".join(line) + " |" for line in promised),
            "",
            "And all of it:",
            "",
            *("| " + " | ".join(line) + " |" for line in table),
            *(["", *notes] if notes else []),
        ]
    )


def brief(report: Report) -> str:
    """The table for the README."""
    return f"{summary(report.rows)}\n\nMedians of one run on {report.date}: {report.machine}."


def written_into(page: str, text: str) -> str:
    """The page, with this text between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def quartiles(spread: Spread) -> str:
    """Where the middle half of the runs lies."""
    return "" if spread.count == 1 else f"{number(spread.low)} to {number(spread.high)}"


def write(report: Report, root: Path) -> None:
    """Write the report down as JSON, and what shows it: tables on two pages, and the pictures."""
    docs = root / "docs"
    told = msgspec.json.format(msgspec.json.encode(report))
    (docs / "benchmarks.json").write_bytes(told + b"\n")
    pictures = docs / "pictures"
    (pictures / "benchmarks.svg").write_text(draw(report.rows), encoding="utf-8")
    (pictures / "waits.svg").write_text(draw_waits(report.rows), encoding="utf-8")
    for page, text in (
        (docs / "benchmarks.md", markdown(report)),
        (root / "README.md", brief(report)),
    ):
        page.write_text(written_into(page.read_text(encoding="utf-8"), text), encoding="utf-8")
