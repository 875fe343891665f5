"""The units and the prices of the bill. The examples are those of Neon's page on calculations."""

import re
from datetime import UTC, date, datetime, timedelta
from importlib import resources

import pytest

from neonctl_async.cli import bill
from neonctl_async.types import ConsumptionMetric, ConsumptionPeriod, ConsumptionTimeframe

START = datetime(2026, 3, 1, tzinfo=UTC)
NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
PUBLISHED = (resources.files("neonctl_async.cli") / "prices.toml").read_text()
PRICES = bill.read_prices(PUBLISHED)
LAUNCH, SCALE = PRICES.plans["launch"], PRICES.plans["scale"]


def day(metric: str, value: int) -> ConsumptionTimeframe:
    """A day of consumption."""
    return ConsumptionTimeframe(
        timeframe_start=START,
        timeframe_end=START + timedelta(days=1),
        metrics=[ConsumptionMetric(metric_name=metric, value=value)],
    )


def month(plan: str, gigabytes: int, start: datetime = START) -> ConsumptionPeriod:
    """A month of public transfer."""
    used = day("public_network_transfer_bytes", gigabytes * 10**9)
    return ConsumptionPeriod(
        period_id="period", period_plan=plan, period_start=start, consumption=[used]
    )


def test_compute_of_the_worked_example() -> None:
    used = [day("compute_unit_seconds", 500_000)]
    assert round(bill.quantities(used).cu_hours, 2) == 138.89
    assert round(bill.cost(used, SCALE), 2) == 30.83


def test_storage_of_the_worked_example() -> None:
    used = [day("root_branch_bytes_month", 2_500_000_000_000)]
    assert round(bill.quantities(used).root_storage_gb_months, 2) == 3.36
    assert round(bill.cost(used, LAUNCH), 2) == 1.18


def test_two_gigabytes_for_a_month_of_31_days_are_two_gigabyte_months() -> None:
    used = [day("root_branch_bytes_month", 48_000_000_000) for _ in range(31)]
    assert bill.quantities(used).root_storage_gb_months == 2.0
    assert bill.cost(used, LAUNCH) == pytest.approx(0.70)


def test_child_branches_of_the_worked_example() -> None:
    used = [day("extra_branches_month", 288)]
    assert bill.quantities(used).child_branch_months == 288 / 744
    assert round(bill.cost(used, LAUNCH), 2) == 0.15
    assert bill.cost(used, SCALE) == 0


def test_included_branches_are_subtracted_from_each_timeframe() -> None:
    used = [day("extra_branches_month", 288), day("extra_branches_month", 0)]
    assert bill.cost(used, LAUNCH) == bill.cost(used[:1], LAUNCH)


@pytest.mark.parametrize(
    ("metric", "value", "expected"),
    [
        ("child_branch_bytes_month", 744 * 10**9, 0.35),
        ("instant_restore_bytes_month", 744 * 10**9, 0.20),
        ("snapshot_storage_bytes_month", 744 * 10**9, 0.09),
        ("private_network_transfer_bytes", 10**9, 0.01),
        ("public_network_transfer_bytes", 10**9, 0),
    ],
)
def test_unit_of_a_metric_costs_its_price(metric: str, value: int, expected: float) -> None:
    assert bill.cost([day(metric, value)], SCALE) == pytest.approx(expected)


def test_included_transfer_belongs_to_all_projects_together_in_each_month() -> None:
    assert bill.transfer_cost([month("launch", 70), month("launch", 50)], PRICES) == pytest.approx(
        20 * 0.10
    )
    april = START + timedelta(days=31)
    assert bill.transfer_cost([month("launch", 70), month("launch", 50, april)], PRICES) == 0


def test_transfer_of_a_plan_without_prices_costs_nothing() -> None:
    assert bill.transfer_cost([month("free", 500)], PRICES) == 0


@pytest.mark.parametrize(
    ("plan", "found"),
    [("launch", LAUNCH), ("scale_v3", SCALE), ("Launch", LAUNCH), ("free", None), (None, None)],
)
def test_prices_are_those_of_the_plan(plan: str | None, found: bill.PlanPrices | None) -> None:
    assert PRICES.of(plan) == found


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cu_hour = 0.106", "cu_hours = 0.106", "cu_hours"),
        ("cu_hour = 0.106", "cu_hour = -1", "$.plans[...].cu_hour"),
        ("date = 2026-05-28", "", "date"),
        ("date = 2026-05-28", "date =", "not valid TOML"),
    ],
)
def test_error_of_a_price_file_names_what_is_wrong(old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        bill.read_prices(PUBLISHED.replace(old, new))


def test_range_is_this_month_by_default() -> None:
    found = bill.range_of(month=None, first=None, end=None, now=NOW)
    assert found == (datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC), "daily")


def test_range_longer_ago_than_days_are_kept_has_whole_months() -> None:
    found = bill.range_of(month=date(2025, 12, 1), first=None, end=None, now=NOW)
    assert found == (
        datetime(2025, 12, 1, tzinfo=UTC),
        datetime(2026, 1, 1, tzinfo=UTC),
        "monthly",
    )
    found = bill.range_of(month=None, first=date(2026, 9, 1), end=None, now=NOW)
    assert found == (
        datetime(2026, 9, 1, tzinfo=UTC),
        datetime(2026, 11, 27, tzinfo=UTC),
        "monthly",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"month": date(2026, 11, 1), "first": date(2026, 11, 2)}, "--month contradicts --from"),
        ({"end": date(2026, 11, 2)}, "--to needs --from"),
        ({"first": date(2026, 11, 2), "end": date(2026, 11, 2)}, "expected a day before --to"),
        ({"first": date(2026, 9, 2)}, "keeps only whole months"),
        ({"first": date(2026, 8, 1), "end": date(2026, 9, 15)}, "keeps only whole months"),
    ],
)
def test_contradictory_days_are_refused(options: dict[str, date], message: str) -> None:
    given = {"month": None, "first": None, "end": None} | options
    with pytest.raises(ValueError, match=message):
        bill.range_of(**given, now=NOW)
