"""Instants and their formats."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_local import ManualClock, clock

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)
INSTANTS = st.timedeltas(timedelta(days=1), LAST - EPOCH).map(
    lambda since: clock.instant(EPOCH + since)
)


@given(INSTANTS)
def test_exact_text_parses_to_its_instant(at: int) -> None:
    assert clock.parse(clock.exactly(at)) == at


@given(INSTANTS)
def test_text_in_seconds_is_truncated(at: int) -> None:
    assert clock.parse(clock.in_seconds(at)) == at - at % clock.SECOND


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (500_000, "1970-01-01T00:00:00.500000Z"),
        (204_170, "1970-01-01T00:00:00.204170Z"),
        (1_000_001, "1970-01-01T00:00:01.000001Z"),
    ],
)
def test_exact_text_always_has_a_fraction(microseconds: int, text: str) -> None:
    assert clock.exactly(microseconds) == text


def test_offset_from_utc_is_required_and_applied() -> None:
    assert clock.parse("1970-01-01T01:00:00+01:00") == 0
    with pytest.raises(ValueError, match="offset"):
        clock.parse("1970-01-01T00:00:00")
    for text in ("0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"):
        with pytest.raises(ValueError, match="out of range"):
            clock.parse(text)


def test_manual_clock_moves_forward_only() -> None:
    manual = ManualClock()
    before = manual()
    manual.advance(1.5)
    assert (manual() - before).total_seconds() == 1.5
    with pytest.raises(ValueError, match="forward"):
        manual.advance(-1)


def test_wall_clock_is_in_utc() -> None:
    assert clock.utc_now().tzinfo is UTC
