"""The rate limits of the simulator."""

from benchmarks.servers.limits import SlidingWindow, SteadyClient


def test_window_counts_requests_until_one_period_after_their_arrival() -> None:
    window = SlidingWindow(2, 60.0)
    for now in (0.0, 10.0):
        assert window.delay(now) == 0
        window.take(now)
    assert window.delay(20.0) == 40.0
    assert window.delay(59.0) == 1.0
    assert window.delay(60.0) == 0
    window.take(60.0)
    assert window.delay(60.0) == 10.0


def test_question_about_the_future_changes_nothing() -> None:
    window = SlidingWindow(1, 1.0)
    window.take(0.0)
    assert window.delay(5.0) == 0
    assert window.delay(0.5) == 0.5


def test_window_without_a_limit_allows_everything() -> None:
    window = SlidingWindow(None, 1.0)
    for _ in range(100):
        window.take(0.0)
    assert window.delay(0.0) == 0


def test_other_client_takes_its_share_of_the_account() -> None:
    account = SlidingWindow(10, 60.0)
    others = SteadyClient(5 / 60, since=-60.0)
    others.send_until(0.0, account)
    allowed = 0
    while account.delay(0.0) == 0:
        account.take(0.0)
        allowed += 1
    assert allowed == 5
