"""The units of Neon's bill. Pure: no I/O.

The rules are those of https://neon.com/docs/introduction/usage-calculations: gigabytes are decimal,
and every month has 744 hours.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

import msgspec

from neonctl_async.models.consumption import ConsumptionTimeframe

HOUR_SECONDS: Final = 3600
GB: Final = 10**9
MONTH_HOURS: Final = 744
DAILY_LIMIT: Final = timedelta(days=60)
"""How long Neon keeps daily consumption."""


class Quantities(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of a project or a branch, in the units of the bill."""

    cu_hours: float = 0.0
    root_storage_gb_months: float = 0.0
    child_storage_gb_months: float = 0.0
    instant_restore_gb_months: float = 0.0
    snapshot_gb_months: float = 0.0
    public_transfer_gb: float = 0.0
    private_transfer_gb: float = 0.0
    child_branch_months: float = 0.0
    """The branch-months of all child branches, including the ones that the plan covers."""


class _Unit(NamedTuple):
    field: str
    size: int


_UNITS: Final[Mapping[str, _Unit]] = MappingProxyType(
    {
        "compute_unit_seconds": _Unit("cu_hours", HOUR_SECONDS),
        "root_branch_bytes_month": _Unit("root_storage_gb_months", MONTH_HOURS * GB),
        "child_branch_bytes_month": _Unit("child_storage_gb_months", MONTH_HOURS * GB),
        "instant_restore_bytes_month": _Unit("instant_restore_gb_months", MONTH_HOURS * GB),
        "public_network_transfer_bytes": _Unit("public_transfer_gb", GB),
        "private_network_transfer_bytes": _Unit("private_transfer_gb", GB),
        "snapshot_storage_bytes_month": _Unit("snapshot_gb_months", MONTH_HOURS * GB),
        "extra_branches_month": _Unit("child_branch_months", MONTH_HOURS),
    }
)
PROJECT_METRICS: Final = tuple(_UNITS)
BRANCH_METRICS: Final = PROJECT_METRICS[:6]
"""Neon reports snapshots and the number of child branches only for projects."""


class Range(NamedTuple):
    """The days of a report: ``from_`` is included, ``to`` is not."""

    from_: datetime
    to: datetime
    granularity: Literal["daily", "monthly"]


def range_of(*, month: date | None, first: date | None, end: date | None, now: datetime) -> Range:
    """Return the range of a month or of the given days; by default, this month.

    Raises ValueError for options that do not fit together, and for part of a month if Neon keeps
    only the total of that month.
    """
    if month is not None and (first is not None or end is not None):
        raise ValueError("--month contradicts --from and --to: leave one of them out")
    if end is not None and first is None:
        raise ValueError("--to needs --from")
    if first is None:
        first = month or now.date().replace(day=1)
        end = (first + timedelta(days=31)).replace(day=1)
    end = end or now.date() + timedelta(days=1)
    if not first < end:
        raise ValueError(f"--from is {first}: expected a day before --to, {end}")
    if now - _midnight(first) < DAILY_LIMIT:
        return Range(_midnight(first), _midnight(end), "daily")
    if first.day != 1 or (end.day != 1 and end <= now.date()):
        raise ValueError(
            f"{first} to {end} are parts of months: of days over {DAILY_LIMIT.days} days ago, Neon "
            "keeps only whole months. Start and end with the first day of a month"
        )
    return Range(_midnight(first), _midnight(end), "monthly")


def quantities(timeframes: Iterable[ConsumptionTimeframe]) -> Quantities:
    """Return the sum of timeframes, in the units of the bill."""
    totals: dict[str, int] = defaultdict(int)
    for timeframe in timeframes:
        for metric in timeframe.metrics:
            totals[metric.metric_name] += metric.value
    return Quantities(**{unit.field: totals[metric] / unit.size for metric, unit in _UNITS.items()})


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
