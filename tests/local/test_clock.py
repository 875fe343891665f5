"""Instants and their texts."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async.local import ManualClock, clock

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)
INSTANTS = st.timedeltas(timedelta(days=1), LAST - EPOCH).map(
    lambda since: clock.instant(EPOCH + since)
)


@given(INSTANTS)
def test_an_exact_text_names_its_instant(at: int) -> None:
    assert clock.parse(clock.exactly(at)) == at


@given(INSTANTS)
def test_a_text_in_seconds_is_cut_off_not_rounded(at: int) -> None:
    assert clock.parse(clock.in_seconds(at)) == at - at % clock.SECOND


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (500_000, "1970-01-01T00:00:00.5Z"),
        (204_170, "1970-01-01T00:00:00.20417Z"),
        (1_000_001, "1970-01-01T00:00:01.000001Z"),
    ],
)
def test_trailing_zeros_are_dropped_as_in_the_recorded_cursors(
    microseconds: int, text: str
) -> None:
    assert clock.exactly(microseconds) == text


def test_an_offset_from_utc_is_understood_and_has_to_be_there() -> None:
    assert clock.parse("1970-01-01T01:00:00+01:00") == 0
    with pytest.raises(ValueError, match="offset"):
        clock.parse("1970-01-01T00:00:00")


def test_a_manual_clock_moves_only_forward() -> None:
    manual = ManualClock()
    before = manual()
    manual.advance(1.5)
    assert (manual() - before).total_seconds() == 1.5
    with pytest.raises(ValueError, match="forward"):
        manual.advance(-1)


def test_the_wall_clock_is_in_utc() -> None:
    assert clock.utc_now().tzinfo is UTC
