"""The units and the prices of Neon's bill. Pure: no I/O.

The rules are those of https://neon.com/docs/introduction/usage-calculations: gigabytes are decimal,
and every month has 744 hours.
"""

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from types import MappingProxyType
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from neonctl_async.models.consumption import ConsumptionPeriod, ConsumptionTimeframe

HOUR_SECONDS: Final = 3600
GB: Final = 10**9
MONTH_HOURS: Final = 744
DAILY_LIMIT: Final = timedelta(days=60)
"""How long Neon keeps the consumption of days."""

_CHILD_BRANCHES: Final = "extra_branches_month"
Price = Annotated[float, msgspec.Meta(ge=0)]


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
    """All child branches: those that the plan includes are not subtracted."""


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
        _CHILD_BRANCHES: _Unit("child_branch_months", MONTH_HOURS),
    }
)
PROJECT_METRICS: Final = tuple(_UNITS)
BRANCH_METRICS: Final = PROJECT_METRICS[:6]
"""Neon reports snapshots and the number of child branches for projects only."""


class PlanPrices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The prices of a plan per unit, and what the plan includes."""

    cu_hour: Price
    storage_gb_month: Price
    instant_restore_gb_month: Price
    snapshot_gb_month: Price
    public_transfer_gb: Price
    included_public_transfer_gb: Price = 0.0
    """Per month, for all projects of the organization together."""
    private_transfer_gb: Price = 0.0
    branch_month: Price
    included_branches: Annotated[int, msgspec.Meta(ge=1)]
    """Per project, with its root branch."""


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of prices."""

    # A field "date" would hide the type of its own annotation, which CPython 3.14 evaluates later.
    as_of: date = msgspec.field(name="date")
    """The date of the source."""
    source: str
    currency: str
    plans: dict[str, PlanPrices]

    def of(self, plan: str | None) -> PlanPrices | None:
        """Return the prices of a plan, or None. ``launch_v3`` has the prices of ``launch``."""
        name = (plan or "").lower()
        return self.plans.get(name) or self.plans.get(name.partition("_")[0])


def read_prices(text: str) -> Prices:
    """Read the prices in a TOML text. Raises ValueError that names what is wrong."""
    try:
        return msgspec.convert(tomllib.loads(text), Prices)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"not valid TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


class Range(NamedTuple):
    """The days of a report: ``from_`` is included, ``to`` is not."""

    from_: datetime
    to: datetime
    granularity: Literal["daily", "monthly"]


def range_of(*, month: date | None, first: date | None, end: date | None, now: datetime) -> Range:
    """Return the range of a month, or from one day to another; by default, of this month.

    Raises ValueError for options that contradict each other, and for parts of a month of which Neon
    keeps only the whole.
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


def cost(timeframes: Iterable[ConsumptionTimeframe], prices: PlanPrices) -> float:
    """Return the cost of a project or a branch, without public transfer.

    What a plan includes of public transfer belongs to the organization: see :func:`transfer_cost`.
    """
    frames = list(timeframes)
    used = quantities(frames)
    storage = used.root_storage_gb_months + used.child_storage_gb_months
    extra_branches = sum(_extra_branch_hours(frame, prices) for frame in frames) / MONTH_HOURS
    return (
        used.cu_hours * prices.cu_hour
        + storage * prices.storage_gb_month
        + used.instant_restore_gb_months * prices.instant_restore_gb_month
        + used.snapshot_gb_months * prices.snapshot_gb_month
        + used.private_transfer_gb * prices.private_transfer_gb
        + extra_branches * prices.branch_month
    )


def transfer_cost(periods: Iterable[ConsumptionPeriod], prices: Prices) -> float:
    """Return the cost of public transfer, from the billing periods of all projects."""
    used: dict[tuple[datetime, str | None], float] = defaultdict(float)
    for period in periods:
        gigabytes = quantities(period.consumption).public_transfer_gb
        used[period.period_start, period.period_plan] += gigabytes
    total = 0.0
    for (_start, plan), gigabytes in used.items():
        if of_plan := prices.of(plan):
            billed = max(0.0, gigabytes - of_plan.included_public_transfer_gb)
            total += billed * of_plan.public_transfer_gb
    return total


def _extra_branch_hours(timeframe: ConsumptionTimeframe, prices: PlanPrices) -> float:
    """Return the hours of child branches beyond those that the plan includes.

    Each timeframe has its own allowance. Without its times, a timeframe includes none.
    """
    hours = 0.0
    if timeframe.timeframe_start and timeframe.timeframe_end:
        hours = (timeframe.timeframe_end - timeframe.timeframe_start) / timedelta(hours=1)
    reported = sum(one.value for one in timeframe.metrics if one.metric_name == _CHILD_BRANCHES)
    return max(0.0, reported - (prices.included_branches - 1) * hours)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
