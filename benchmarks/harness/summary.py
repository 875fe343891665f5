"""The table of results in the README."""

from collections.abc import Sequence

from benchmarks.harness.results import (
    FLOOR,
    LATENESS,
    NEON_API,
    NEON_SDK,
    OURS,
    PYDANTIC,
    REQUESTS,
    Row,
    format_number,
)

CLIENTS = (OURS, FLOOR, NEON_API, PYDANTIC, NEON_SDK)
SHOWN = {
    ("GET", "one after another"): "one GET, ms",
    ("50 GETs", "concurrent"): "50 concurrent GETs, ms",
    ("page of 1,000 operations", "fetched and decoded"): "page of 1,000 operations, ms",
    ("100,000 operations in memory", "resident memory"): "100,000 operations in memory, MB",
    ("1,000 operations in 1 project", REQUESTS): "waiting for 1,000 operations, requests",
    ("1,000 operations in 1 project", LATENESS): "… lateness, s",
    ("1,000 operations in 1 project, 50 ms away", LATENESS): "… lateness from 50 ms away, s",
}
"""The scenario and measure of each shown row, and its title in the README."""


def summary(rows: Sequence[Row]) -> str:
    """Return a table of medians: one line per row, one column per client."""
    by_name = {(row.scenario, row.measure): row for row in rows}
    lines = [
        ("", *CLIENTS),
        ("---", *["---:"] * len(CLIENTS)),
        *((title, *_medians(by_name[key])) for key, title in SHOWN.items() if key in by_name),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _medians(row: Row) -> list[str]:
    """Return the median of each client; a hyphen if it did not take part."""
    return [
        format_number(row.spreads[name].median) if name in row.spreads else "-" for name in CLIENTS
    ]
