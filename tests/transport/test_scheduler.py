"""The order of requests and the times at which they are sent. Times are numbers."""

import math

import pytest

from neonctl_async import RateBudget
from neonctl_async.transport.protocol import READS
from tests.transport.scheduled_requests import UNLIMITED, Requests, limited, use_up


def routes_of(requests: Requests) -> list[str]:
    return [ticket.route for _, ticket in requests.sent]


def times_of(requests: Requests) -> list[float]:
    return [time for time, _ in requests.sent]


def note_wanted(requests: Requests, projects: int) -> None:
    """Set the number of projects with a pending wait."""
    for number in range(1000):
        requests.scheduler.note_wanted(f"project-{number}", polls=int(number < projects))


def test_request_is_sent_at_once_while_nothing_waits() -> None:
    requests = Requests(limited(2), 10)
    requests.add("GET /a", is_poll=True)
    requests.add("GET /a")
    assert len(requests.in_flight) == 2
    assert not requests.scheduler.has_waiting
    requests.add("GET /a")
    assert requests.scheduler.has_waiting
    assert requests.give_out() == math.inf


@pytest.mark.parametrize("is_poll", [True, False])
def test_waiting_request_goes_before_a_new_one(*, is_poll: bool) -> None:
    requests = Requests(UNLIMITED, 1)
    first = requests.add("GET /a")
    waiting = requests.add("GET /b", is_poll=is_poll)
    requests.release(first)
    requests.add("GET /c", is_poll=is_poll)
    requests.give_out()
    assert requests.in_flight == [waiting]


def test_requests_of_different_routes_are_sent_in_their_order() -> None:
    requests = Requests(UNLIMITED, 1)
    busy = requests.add("GET /busy")
    order = [f"GET /{number}" for number in (1, 2, 1, 3, 2, 1)]
    tickets = [requests.add(route) for route in order]
    requests.withdraw(tickets[2])
    requests.release(busy)
    while requests.give_out() == math.inf and requests.waiting:
        requests.release_all()
    assert routes_of(requests)[1:] == ["GET /1", "GET /2", "GET /3", "GET /2", "GET /1"]


def test_withdrawn_request_leaves_nothing_behind() -> None:
    requests = Requests(UNLIMITED, 1)
    requests.add("GET /a")
    for number in range(100):
        requests.withdraw(requests.add(f"POST /{number}"))
        requests.withdraw(requests.add(f"GET /{number}", is_poll=True))
    assert not requests.scheduler.has_waiting
    lines = vars(requests.scheduler)
    assert [vars(lines[name])["_routes"] for name in ("_calls", "_polls")] == [{}, {}]


def test_calls_go_before_polls_and_every_tenth_request_is_a_poll() -> None:
    requests = Requests(UNLIMITED, 1)
    requests.add("GET /first")
    for _ in range(3):
        requests.add("GET /poll", is_poll=True)
    for _ in range(30):
        requests.add("GET /call")
    while requests.waiting:
        requests.release_all()
        requests.give_out()
    calls = ["GET /call"] * 9
    polled = [*calls, "GET /poll"]
    assert routes_of(requests) == ["GET /first", *polled * 3, *calls[:3]]


def test_calls_count_for_the_order_only_while_a_poll_waits() -> None:
    requests = Requests(UNLIMITED, 1)
    requests.add("GET /first")
    for _ in range(8):
        requests.add("GET /early")
    while requests.waiting:
        requests.release_all()
        requests.give_out()
    requests.add("GET /poll", is_poll=True)
    for _ in range(9):
        requests.add("GET /late")
    while requests.waiting:
        requests.release_all()
        requests.give_out()
    assert routes_of(requests)[-2:] == ["GET /late", "GET /poll"]


def test_poll_that_a_deadline_requires_goes_before_all_other_requests() -> None:
    requests = Requests(UNLIMITED, 1)
    busy = requests.add("GET /busy")
    requests.add("GET /call")
    requests.add("GET /poll", is_poll=True)
    urgent = requests.add("GET /poll", is_poll=True, urgent_at=5.0)
    requests.now = 4.9
    requests.release(busy)
    requests.give_out()
    assert routes_of(requests)[-1] == "GET /call"
    requests.now = 5.0
    requests.release_all()
    requests.give_out()
    assert requests.in_flight == [urgent]


def test_poll_that_a_deadline_requires_can_be_withdrawn() -> None:
    requests = Requests(UNLIMITED, 1)
    requests.add("GET /busy")
    urgent = requests.add("GET /poll", is_poll=True, urgent_at=0.0)
    requests.give_out()
    requests.withdraw(urgent)
    assert not requests.scheduler.has_waiting


def test_poll_that_cannot_be_sent_delays_no_call() -> None:
    requests = Requests(RateBudget(per_minute=None, route_limits={"GET /poll": 1}), 1)
    use_up(requests, 1, "GET /poll")
    requests.add("GET /first")
    requests.add("GET /poll", is_poll=True)
    for _ in range(30):
        requests.add("GET /call")
    for _ in range(30):
        requests.release_all()
        assert requests.give_out() == math.inf
    assert routes_of(requests)[2:] == ["GET /call"] * 30
    requests.release_all()
    assert requests.give_out() == 1.0


def test_poll_waits_for_requests_in_flight_if_they_occupy_the_minute() -> None:
    requests = Requests(limited(20), 20)
    calls = [requests.add("GET /call") for _ in range(20)]
    requests.add("GET /poll", is_poll=True)
    assert requests.give_out() == math.inf
    requests.now = 7.0
    requests.release(calls[0])
    assert requests.give_out() == 67.0


def test_calls_that_start_operations_leave_a_poll_for_each_pending_project() -> None:
    requests = Requests(limited(100), 200)
    note_wanted(requests, projects=30)
    for _ in range(98):
        requests.add("POST /a")
    [query] = READS
    reads = [requests.add("GET /a"), requests.add(query)]
    requests.give_out()
    # 30 slots are reserved for polls.
    assert routes_of(requests) == ["POST /a"] * 70 + ["GET /a", query]
    assert [ticket for _, ticket in requests.sent[-2:]] == reads
    requests.release_all()
    note_wanted(requests, projects=10)
    requests.give_out()
    assert len(requests.waiting) == 98 - 70 - 18
    note_wanted(requests, projects=0)
    requests.give_out()
    assert not requests.waiting


def test_at_most_half_of_the_minute_is_reserved_for_polls() -> None:
    requests = Requests(limited(100), 200)
    note_wanted(requests, projects=900)
    for _ in range(80):
        requests.add("POST /a")
    requests.give_out()
    assert len(requests.sent) == 50


@pytest.mark.parametrize(("per_minute", "seconds"), [(100, 12.0), (10, 60.0)])
def test_held_call_is_sent_after_some_time_although_the_slots_are_reserved(
    per_minute: int, seconds: float
) -> None:
    requests = Requests(limited(per_minute), 200)
    note_wanted(requests, projects=900)
    for _ in range(per_minute):
        requests.add("POST /a")
    requests.give_out()
    assert len(requests.sent) == per_minute // 2
    requests.give_out_until(3 * seconds)
    later = times_of(requests)[per_minute // 2 :]
    assert later == [seconds, 2 * seconds, 3 * seconds]


def test_held_calls_and_polls_share_the_last_slots() -> None:
    requests = Requests(limited(700), 100, check_times=False)
    for number in range(665):
        requests.add(f"GET /{number}")
    requests.release_all()
    note_wanted(requests, projects=20)
    for _ in range(100):
        requests.add("POST /branches")
    for _ in range(20):
        requests.add("GET /operations", is_poll=True)
    first = len(requests.sent)
    requests.give_out_until(59.0)
    polls = [ticket.is_poll for _, ticket in requests.sent[first:]]
    assert sum(polls) >= 10
    assert polls.count(False) >= 10


def test_new_call_is_sent_at_once_when_the_longest_hold_is_over() -> None:
    requests = Requests(limited(100), 200)
    note_wanted(requests, projects=900)
    for _ in range(50):
        requests.add("POST /a")
    requests.now = 12.0
    last = requests.add("POST /a")
    assert requests.in_flight[-1] is last
    requests.add("POST /a")
    assert requests.give_out() == 24.0


def test_lone_call_that_starts_operations_does_not_wait_for_polls() -> None:
    requests = Requests(limited(100), 200)
    use_up(requests, 90)
    note_wanted(requests, projects=50)
    requests.add("POST /a")
    assert len(requests.in_flight) == 1


@pytest.mark.parametrize("per_minute", [1, 2, 10])
def test_small_limit_lets_calls_and_polls_through_with_many_pending_projects(
    per_minute: int,
) -> None:
    requests = Requests(limited(per_minute), 100)
    note_wanted(requests, projects=500)
    for _ in range(20 * per_minute):
        requests.add("POST /a")
        requests.add("GET /poll", is_poll=True)
    for minute in range(1, 21):
        while requests.give_out() <= 60.0 * minute:
            requests.release_all()
            requests.now = min(requests.give_out(), 60.0 * minute)
        requests.now = 60.0 * minute
        requests.release_all()
    sent = routes_of(requests)
    assert len(sent) >= 0.45 * 20 * per_minute
    assert sent.count("POST /a") >= 9
    assert sent.count("GET /poll") >= 1


def test_pause_after_a_429_is_followed_by_a_trial() -> None:
    requests = Requests(UNLIMITED, 10)
    requests.scheduler.hold_back(None, 0.0)
    for _ in range(3):
        requests.add("GET /a")
    assert requests.give_out() == 1.0
    requests.now = 1.0
    assert requests.give_out() == 2.0
    [trial] = requests.in_flight
    requests.now = 1.5
    requests.release(trial)
    assert requests.give_out() == pytest.approx(1.6)
    requests.now = 1.6
    assert requests.give_out() < 1.71
    assert len(requests.sent) == 2


def test_cancelled_trial_is_replaced_by_the_next_request() -> None:
    requests = Requests(UNLIMITED, 10)
    requests.hold_back(5.0)
    first, second, _ = (requests.add("GET /a") for _ in range(3))
    requests.give_out_until(5.0)
    assert requests.give_out() == 6.0
    requests.cancel(first)
    assert requests.give_out() == 6.0
    assert requests.in_flight == [second]


def test_trial_that_hangs_delays_the_others_for_a_second() -> None:
    requests = Requests(UNLIMITED, 10)
    requests.hold_back(5.0)
    for _ in range(3):
        requests.add("GET /a")
    requests.give_out_until(10.0)
    assert times_of(requests) == pytest.approx([5.0, 6.0, 6.1])


def test_request_after_the_pause_is_the_trial_if_none_waits() -> None:
    requests = Requests(UNLIMITED, 10)
    requests.hold_back(5.0)
    requests.now = 5.0
    trial = requests.add("GET /a")
    assert requests.in_flight == [trial]
    requests.add("GET /a")
    assert requests.give_out() == 6.0
