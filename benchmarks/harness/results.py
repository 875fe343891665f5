"""What was measured: the runs of each contender, how they spread, and what they may be."""

import statistics
from collections.abc import Mapping, Sequence

import msgspec

OURS = "neonctl-async"
FLOOR = "floor"
NEON_API = "neon-api"
PYDANTIC = "httpx + pydantic"
NEON_SDK = "@neon/sdk"


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The median of all runs, their quartiles, and how many they are."""

    median: float
    low: float
    high: float
    count: int


class Target(msgspec.Struct, frozen=True):
    """What ours may be: ``most`` times what contender ``by`` takes, without one ``most`` itself."""

    most: float
    by: str | None = None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What a scenario found out about one measure.

    ``ratios`` are those of ours to each other contender, run by run.
    """

    scenario: str
    measure: str
    unit: str
    spreads: dict[str, Spread]
    ratios: dict[str, Spread]
    targets: list[Target]
    met: bool | None
    note: str = ""

    def meets(self, target: Target) -> bool:
        """Whether the median is within the target."""
        found = self.spreads[OURS] if target.by is None else self.ratios[target.by]
        return found.median <= target.most


def spread(values: Sequence[float]) -> Spread:
    """How these values spread."""
    low, median, high = (
        statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [*values] * 3
    )
    return Spread(median=median, low=low, high=high, count=len(values))


def row(
    scenario: str,
    measure: str,
    unit: str,
    values: Mapping[str, Sequence[float]],
    *,
    targets: Sequence[Target] = (),
    note: str = "",
) -> Row:
    """The row of what each contender took, run by run: run n of each came in the same turn.

    Where a contender has fewer runs than ours, the turns that both took part in are compared. One
    that ever took nothing has no ratio.
    """
    ours = values[OURS]
    found = Row(
        scenario=scenario,
        measure=measure,
        unit=unit,
        spreads={contender: spread(runs) for contender, runs in values.items()},
        ratios={
            contender: spread([own / its for own, its in zip(ours, runs, strict=False)])
            for contender, runs in values.items()
            if contender != OURS and all(runs)
        },
        targets=list(targets),
        met=None,
        note=note,
    )
    if not targets:
        return found
    return msgspec.structs.replace(found, met=all(found.meets(target) for target in targets))


def number(value: float) -> str:
    """Three digits that count."""
    if not value:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")
