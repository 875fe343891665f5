"""The clock of the server, with times from the test. The tests of the poller cover its effect."""

from datetime import datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async.transport.protocol import ServerClock
from tests.support.records import EPOCH

HOUR = timedelta(hours=1)


def http_date(time: datetime) -> str:
    return format_datetime(time, usegmt=True)


def clock_with(date: str | None) -> ServerClock:
    clock = ServerClock()
    clock.note(date, now=10.0)
    return clock


@pytest.mark.parametrize("date", [None, "", "yesterday", "Thu, 99 Jan 2026 00:00:00 GMT"])
def test_local_clock_is_used_without_a_valid_date(date: str | None) -> None:
    assert clock_with(date).utc_now(11.0, EPOCH) == EPOCH


@given(st.floats(-1.9, 1.9))
def test_local_clock_is_used_while_it_agrees(seconds: float) -> None:
    local = EPOCH + timedelta(seconds=seconds)
    assert clock_with(http_date(EPOCH)).utc_now(10.0, local) == local


@given(st.sampled_from([-HOUR, HOUR]), st.floats(0, 1000))
def test_clock_of_the_server_is_used_if_the_clocks_differ(ahead: timedelta, seconds: float) -> None:
    clock = clock_with(http_date(EPOCH + ahead))
    passed = timedelta(seconds=seconds)
    difference = clock.utc_now(10.0 + seconds, EPOCH + passed) - (EPOCH + ahead + passed)
    assert abs(difference) < timedelta(milliseconds=1)


def test_step_of_the_local_clock_has_no_effect() -> None:
    clock = clock_with(http_date(EPOCH))
    assert clock.utc_now(15.0, EPOCH - HOUR) == EPOCH + timedelta(seconds=5)


def test_newest_date_counts_and_a_response_without_one_changes_nothing() -> None:
    clock = clock_with(http_date(EPOCH))
    clock.note(http_date(EPOCH + HOUR), now=20.0)
    clock.note(None, now=30.0)
    assert clock.utc_now(30.0, EPOCH) == EPOCH + HOUR + timedelta(seconds=10)


def test_date_at_the_end_of_time_is_accepted() -> None:
    end = "Fri, 31 Dec 9999 23:59:59 GMT"
    assert clock_with(end).utc_now(100.0, EPOCH).year == 9999


def test_difference_of_two_seconds_is_tolerated() -> None:
    local = EPOCH + timedelta(seconds=2)
    assert clock_with(http_date(EPOCH)).utc_now(10.0, local) == local
