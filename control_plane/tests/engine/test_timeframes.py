"""The timeframes of consumption."""

from datetime import UTC, datetime

import pytest

from neonctl_local import ApiError
from neonctl_local.clock import in_seconds, instant
from neonctl_local.engine.timeframes import GRANULARITIES, Span, month_of, split


def at(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> int:
    return instant(datetime(year, month, day, hour, minute, tzinfo=UTC))


NOW = at(2026, 3, 15, 12, 30)


@pytest.mark.parametrize(
    ("granularity", "since", "until", "expected"),
    [
        ("hourly", at(2026, 3, 15, 9, 59), at(2026, 3, 15, 11), ["09:00", "10:00"]),
        ("hourly", at(2026, 3, 15, 11, 5), at(2026, 3, 15, 12, 1), ["11:00", "12:00"]),
        ("hourly", at(2026, 3, 15, 12), at(2026, 4, 1), ["12:00"]),
        ("hourly", at(2026, 3, 15, 9), at(2026, 3, 15, 9), []),
        ("hourly", at(2026, 4, 1), at(2026, 4, 2), []),
    ],
)
def test_range_is_split_into_whole_hours_until_now(
    granularity: str, since: int, until: int, expected: list[str]
) -> None:
    frames = split(granularity, since, until, NOW)
    assert [in_seconds(frame.start)[11:16] for frame in frames] == expected
    assert all(frame.end - frame.start == 3600 * 10**6 for frame in frames)


def test_days_and_months_start_at_midnight() -> None:
    days = split("daily", at(2026, 2, 27, 15, 30), at(2026, 3, 2), NOW)
    assert [in_seconds(frame.start)[:16] for frame in days] == [
        "2026-02-27T00:00",
        "2026-02-28T00:00",
        "2026-03-01T00:00",
    ]
    months = split("monthly", at(2025, 12, 31), at(2026, 3, 1), NOW)
    assert [(in_seconds(frame.start)[:10], in_seconds(frame.end)[:10]) for frame in months] == [
        ("2025-12-01", "2026-01-01"),
        ("2026-01-01", "2026-02-01"),
        ("2026-02-01", "2026-03-01"),
    ]


@pytest.mark.fact("consumption-2")
@pytest.mark.parametrize(
    ("granularity", "first", "words"),
    [
        ("hourly", at(2026, 3, 8, 12), "168 hours"),
        ("daily", at(2026, 1, 14), "60 days"),
        ("monthly", at(2025, 3, 1), "year"),
    ],
)
def test_history_is_kept_for_a_time_that_depends_on_the_granularity(
    granularity: str, first: int, words: str
) -> None:
    assert split(granularity, first, NOW, NOW)[0].start == first
    with pytest.raises(ApiError, match=words) as caught:
        split(granularity, first - 1_000_000, NOW, NOW)
    assert caught.value.status == 406


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_end_of_the_range_before_its_start_is_refused(granularity: str) -> None:
    with pytest.raises(ApiError, match="must not be before from") as caught:
        split(granularity, NOW, NOW - 1, NOW)
    assert caught.value.status == 406


def test_history_starts_in_march_2024() -> None:
    now = at(2024, 3, 10)
    assert split("monthly", at(2024, 3, 1), now, now)
    with pytest.raises(ApiError, match="2024-03-01T00:00:00Z on"):
        split("daily", at(2024, 2, 29), now, now)


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [((0, 10), (5, 20), 5), ((5, 20), (0, 10), 5), ((0, 10), (10, 20), 0), ((0, 1), (5, 6), 0)],
)
def test_overlap_is_the_time_that_two_spans_share(
    first: tuple[int, int], second: tuple[int, int], shared: int
) -> None:
    assert Span(*first).overlap(Span(*second)) == shared


def test_month_contains_its_first_moment_and_not_its_last() -> None:
    december = Span(at(2025, 12, 1), at(2026, 1, 1))
    assert month_of(december.start) == month_of(december.end - 1) == december
    assert month_of(december.end).start == december.end
