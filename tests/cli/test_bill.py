"""The units of the bill. The examples are those of Neon's page on calculations."""

from datetime import UTC, date, datetime, timedelta

import pytest

from neonctl_async.cli import bill
from neonctl_async.types import ConsumptionMetric, ConsumptionTimeframe

START = datetime(2026, 3, 1, tzinfo=UTC)
NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)


def day(metric: str, value: int) -> ConsumptionTimeframe:
    """A day of consumption."""
    return ConsumptionTimeframe(
        timeframe_start=START,
        timeframe_end=START + timedelta(days=1),
        metrics=[ConsumptionMetric(metric_name=metric, value=value)],
    )


def test_compute_of_the_worked_example() -> None:
    used = [day("compute_unit_seconds", 500_000)]
    assert round(bill.quantities(used).cu_hours, 2) == 138.89


def test_storage_of_the_worked_example() -> None:
    used = [day("root_branch_bytes_month", 2_500_000_000_000)]
    assert round(bill.quantities(used).root_storage_gb_months, 2) == 3.36


def test_two_gigabytes_for_a_month_of_31_days_are_two_gigabyte_months() -> None:
    used = [day("root_branch_bytes_month", 48_000_000_000) for _ in range(31)]
    assert bill.quantities(used).root_storage_gb_months == 2.0


def test_child_branches_of_the_worked_example() -> None:
    used = [day("extra_branches_month", 288)]
    assert bill.quantities(used).child_branch_months == 288 / 744


@pytest.mark.parametrize(
    ("metric", "value", "unit"),
    [
        ("child_branch_bytes_month", 744 * 10**9, "child_storage_gb_months"),
        ("instant_restore_bytes_month", 744 * 10**9, "instant_restore_gb_months"),
        ("snapshot_storage_bytes_month", 744 * 10**9, "snapshot_gb_months"),
        ("private_network_transfer_bytes", 10**9, "private_transfer_gb"),
        ("public_network_transfer_bytes", 10**9, "public_transfer_gb"),
    ],
)
def test_metric_is_shown_in_its_unit(metric: str, value: int, unit: str) -> None:
    assert bill.quantities([day(metric, value)]) == bill.Quantities(**{unit: 1.0})


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
