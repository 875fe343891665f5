"""The pause after a 429. Times are numbers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async.transport.pause import (
    FIRST_PAUSE,
    MAX_PAUSE,
    SLOW_START_GAP,
    SLOW_START_SECONDS,
    Pause,
)


def paused(retry_after: float | None = None, now: float = 100.0) -> Pause:
    pause = Pause()
    pause.start(retry_after, now)
    return pause


def test_nothing_is_delayed_without_a_429() -> None:
    pause = Pause()
    assert not pause.is_active
    assert pause.sendable_at == -math.inf
    pause.note_ended(object(), 1.0)
    pause.note_cancelled(object())
    assert pause.sendable_at == -math.inf


@pytest.mark.parametrize(
    ("retry_after", "seconds"), [(None, 1.0), (0.0, 1.0), (0.25, 0.25), (7.0, 7.0), (3600.0, 60.0)]
)
def test_pause_lasts_for_retry_after_but_not_longer_than_a_window(
    retry_after: float | None, seconds: float
) -> None:
    pause = paused(retry_after)
    assert pause.is_active
    assert pause.sendable_at == 100.0 + seconds


def test_each_failed_trial_doubles_the_pause_up_to_a_minute() -> None:
    pause, now, seconds = Pause(), 0.0, list[float]()
    for trial in range(9):
        pause.start(None, now)
        seconds.append(pause.sendable_at - now)
        now = pause.sendable_at
        pause.note_sent(trial, now)
        pause.note_ended(trial, now)
    assert seconds == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_further_429_during_the_pause_only_extends_it_by_retry_after() -> None:
    pause = paused(None)
    pause.start(None, 100.9)
    assert pause.sendable_at == 101.0
    pause.start(5.0, 100.9)
    assert pause.sendable_at == 105.9
    pause.start(1.0, 101.0)
    assert pause.sendable_at == 105.9
    pause.start(3600.0, 101.0)
    assert pause.sendable_at == 161.0
    pause.start(None, 200.0)  # nothing has been sent since the pause
    assert pause.sendable_at == 161.0
    pause.note_sent(trial := object(), 200.0)
    pause.note_ended(trial, 200.5)
    pause.start(None, 200.5)
    assert pause.sendable_at == 202.5


def test_one_request_is_sent_as_a_trial() -> None:
    pause = paused()
    pause.note_sent(trial := object(), 101.0)
    assert pause.sendable_at == 101.0 + FIRST_PAUSE
    pause.note_ended(object(), 101.1)
    assert pause.sendable_at == 101.0 + FIRST_PAUSE
    pause.note_ended(trial, 101.2)
    assert pause.sendable_at == 101.2 + SLOW_START_GAP
    assert pause.is_active


def test_cancelled_trial_is_replaced() -> None:
    pause = paused()
    pause.note_sent(first := object(), 101.0)
    pause.note_cancelled(object())
    assert pause.sendable_at == 101.0 + FIRST_PAUSE
    pause.note_cancelled(first)
    assert pause.sendable_at <= 101.0
    pause.note_sent(second := object(), 101.5)
    assert pause.sendable_at == 101.5 + FIRST_PAUSE
    pause.note_ended(first, 101.6)
    assert pause.sendable_at == 101.5 + FIRST_PAUSE
    pause.note_ended(second, 101.7)
    assert pause.sendable_at == 101.7 + SLOW_START_GAP


def test_trial_that_hangs_does_not_stop_the_others() -> None:
    pause = paused()
    pause.note_sent(trial := object(), 101.0)
    pause.note_sent(object(), 102.0)
    assert pause.sendable_at == pytest.approx(102.0 + SLOW_START_GAP)
    pause.note_sent(object(), 105.0)
    sendable_at = pause.sendable_at
    pause.note_ended(trial, 105.0)
    assert pause.sendable_at == sendable_at
    pause.start(None, 105.0)
    assert pause.sendable_at == pytest.approx(105.0 + FIRST_PAUSE)


def test_429_of_an_earlier_request_does_not_end_the_trial() -> None:
    pause = paused()
    pause.note_sent(trial := object(), 101.0)
    pause.start(None, 101.5)
    assert pause.sendable_at == 101.0 + FIRST_PAUSE
    pause.note_ended(trial, 101.6)
    assert pause.sendable_at == 101.6 + SLOW_START_GAP


def test_retry_after_of_an_earlier_request_delays_the_next_trial() -> None:
    pause = paused()
    pause.note_sent(trial := object(), 101.0)
    pause.start(5.0, 101.5)
    assert pause.sendable_at == 106.5
    pause.note_ended(trial, 101.6)
    assert pause.sendable_at == 106.5
    pause.note_sent(object(), 106.5)
    assert pause.sendable_at == 106.5 + FIRST_PAUSE


def test_requests_become_faster_until_the_slow_start_ends() -> None:
    pause = paused()
    pause.note_sent(trial := object(), 101.0)
    pause.note_ended(trial, 101.0)
    times, gaps = [101.0], list[float]()
    while pause.is_active:
        gaps.append(pause.sendable_at - times[-1])
        times.append(pause.sendable_at)
        pause.note_sent(object(), times[-1])
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] == pytest.approx(SLOW_START_GAP)
    half = sum(time < 101.0 + SLOW_START_SECONDS / 2 for time in times)
    assert half == pytest.approx(104, abs=3)
    assert times[-1] <= 101.0 + SLOW_START_SECONDS
    assert pause.sendable_at <= times[-1]


def test_slow_start_ends_also_without_requests() -> None:
    pause = paused()
    pause.note_sent(trial := object(), 101.0)
    pause.note_ended(trial, 101.0)
    end = 101.0 + SLOW_START_SECONDS
    pause.note_sent(object(), end)
    assert not pause.is_active
    pause.start(None, end)
    assert pause.sendable_at == end + FIRST_PAUSE


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 30), st.floats(0, 100))))
def test_pause_always_ends(events: list[tuple[int, float, float]]) -> None:
    pause, now, sent = Pause(), 0.0, list[object]()
    for kind, seconds, retry_after in events:
        now += seconds
        if kind == 0:
            pause.start(None, now)
        elif kind == 1:
            pause.start(retry_after, now)
        elif kind == 2 and now >= pause.sendable_at:
            sent.append(object())
            pause.note_sent(sent[-1], now)
        elif kind == 3 and sent:
            pause.note_ended(sent.pop(), now)
        elif kind == 4 and sent:
            pause.note_cancelled(sent.pop())
        assert pause.sendable_at <= now + MAX_PAUSE
