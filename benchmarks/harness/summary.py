"""The figures that the README shows."""

from collections.abc import Iterator, Sequence

from benchmarks.harness.results import FLOOR, NEON_API, NEON_SDK, OURS, PYDANTIC, Row, number

CONTENDERS = (OURS, FLOOR, NEON_API, PYDANTIC, NEON_SDK)
SHOWN = {
    ("a GET", "one after another"): "a GET, ms",
    ("50 GETs", "at once"): "50 GETs at once, ms",
    ("a page of 1,000", "to objects"): "a page of 1,000 operations, ms",
    ("100,000 operations held", "resident memory"): "100,000 operations held, MB",
    ("1,000 operations in 1 project", "cost"): "waiting for 1,000 operations, requests",
    ("1,000 operations in 1 project", "late"): "… seconds after the last has ended",
    ("1,000 operations in 1 project, 50 ms away", "late"): "… the same from 50 ms away",
}
"""The row, and what it is called there."""


def summary(rows: Sequence[Row]) -> str:
    """A table of medians, a line a scenario, a column a contender."""
    by_name = {(row.scenario, row.measure): row for row in rows}
    lines = [
        ("", *CONTENDERS),
        ("---", *["---:"] * len(CONTENDERS)),
        *((name, *medians(by_name[key])) for key, name in SHOWN.items() if key in by_name),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def medians(row: Row) -> Iterator[str]:
    """What each has taken; a hyphen for who does not do that."""
    for name in CONTENDERS:
        yield number(row.spreads[name].median) if name in row.spreads else "-"
