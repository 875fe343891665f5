"""The results of a scenario: statistics of each client's runs, ratios and targets."""

import statistics
from collections.abc import Mapping, Sequence

import msgspec

OURS = "neonctl-async"
FLOOR = "floor"
NEON_API = "neon-api"
PYDANTIC = "httpx + pydantic"
NEON_SDK = "@neon/sdk"
GATHERED = "GETs every second, gathered"
PYTEST_POSTGRESQL = "pytest-postgresql"

LATENESS, REQUESTS = "lateness", "requests"
"""The two measures of a wait."""
ROUND_TRIPS = (0.0, 0.05, 0.2)
"""The round trips at which waits are measured, in seconds."""


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The median of all runs, their quartiles, and their number."""

    median: float
    low: float
    high: float
    count: int


class Target(msgspec.Struct, frozen=True):
    """An upper limit for our median, or for our ratio to the client ``relative_to``."""

    limit: float
    relative_to: str | None = None


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The results of one measure of a scenario.

    ``ratios`` are ours divided by those of each other client, run by run. Rows with a ``column``
    are shown in a table of their scenario.
    """

    scenario: str
    measure: str
    unit: str
    spreads: dict[str, Spread]
    ratios: dict[str, Spread]
    targets: list[Target]
    met: bool | None
    note: str = ""
    column: str = ""

    def measured(self, target: Target) -> Spread:
        """Return the statistics that a target limits."""
        if target.relative_to is None:
            return self.spreads[OURS]
        return self.ratios[target.relative_to]

    def meets(self, target: Target) -> bool:
        """Return whether the median is within the target."""
        return self.measured(target).median <= target.limit


def spread(values: Sequence[float]) -> Spread:
    """Return the statistics of these values."""
    low, median, high = (
        statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [*values] * 3
    )
    return Spread(median=median, low=low, high=high, count=len(values))


def make_row(
    scenario: str,
    measure: str,
    unit: str,
    values: Mapping[str, Sequence[float]],
    *,
    targets: Sequence[Target] = (),
    note: str = "",
    column: str = "",
) -> Row:
    """Return the row of each client's values. Value n of every client is from round n.

    A client with fewer values than ours is compared in the rounds that both took part in. A client
    with a value of 0 has no ratio.
    """
    ours = values[OURS]
    row = Row(
        scenario=scenario,
        measure=measure,
        unit=unit,
        spreads={client: spread(runs) for client, runs in values.items()},
        ratios={
            client: spread([own / theirs for own, theirs in zip(ours, runs, strict=False)])
            for client, runs in values.items()
            if client != OURS and all(runs)
        },
        targets=list(targets),
        met=None,
        note=note,
        column=column,
    )
    if not targets:
        return row
    return msgspec.structs.replace(row, met=all(row.meets(target) for target in targets))


def wait_rows(
    scenario: str,
    column: str,
    lateness: Mapping[str, Sequence[float]],
    requests: Mapping[str, Sequence[float]],
    *,
    targets: tuple[Target, Target],
) -> list[Row]:
    """Return the rows of a cell in the table of a wait, with a target for each of them."""
    measures = ((LATENESS, "s", lateness), (REQUESTS, "count", requests))
    return [
        make_row(scenario, f"{measure}, {column}", unit, values, targets=[target], column=column)
        for (measure, unit, values), target in zip(measures, targets, strict=True)
    ]


def distance(round_trip: float) -> str:
    """Return a round trip as the tables show it."""
    return f"{round_trip * 1000:.0f} ms away"


def format_number(value: float) -> str:
    """Return the value with three significant digits."""
    if not value:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")
