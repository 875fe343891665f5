"""The demand of a scheduler, and the cost of a grant. Times are numbers."""

import math

from neonctl_async import RateBudget
from neonctl_async.transport.account import LocalAccount
from neonctl_async.transport.scheduler import Scheduler, Ticket
from tests.transport.scheduled_requests import UNLIMITED, Requests, limited


class RecordingAccount(LocalAccount):
    """An account that counts the questions of the scheduler, and records its steps."""

    def __init__(self, limits: RateBudget) -> None:
        super().__init__(limits)
        self.steps: list[tuple[str, str, float]] = []
        self.questions = 0
        self.waiting = 0

    def free_at(self, route: str, now: float, *, waiting: int) -> float:
        self.questions += 1
        self.waiting = waiting
        self.steps.append(("free_at", route, now))
        return super().free_at(route, now, waiting=waiting)

    def take(self, route: str, now: float) -> None:
        self.steps.append(("take", route, now))
        super().take(route, now)

    def release(self, route: str, now: float) -> None:
        self.steps.append(("release", route, now))
        super().release(route, now)

    def cancel(self, route: str, now: float) -> None:
        self.steps.append(("cancel", route, now))
        super().cancel(route, now)


def test_waiting_calls_leave_fewer_slots_to_polls() -> None:
    requests = Requests(limited(100), 80)
    requests.scheduler.note_wanted("a", polls=4)
    requests.scheduler.note_wanted("b", polls=6)
    assert (requests.scheduler.polls_left(0.0), requests.scheduler.polls_wanted) == (100, 10)
    for _ in range(80):
        requests.add("GET /a")
    withdrawn = requests.add("GET /a")
    requests.add("GET /poll", is_poll=True)
    assert (requests.scheduler.polls_left(0.0), requests.scheduler.polls_wanted) == (
        100 - 80 - 1,
        10,
    )
    requests.add("POST /a")
    assert (requests.scheduler.polls_left(0.0), requests.scheduler.polls_wanted) == (
        100 - 80 - 2,
        10,
    )
    requests.withdraw(withdrawn)
    requests.release_all()
    requests.give_out()
    assert (requests.scheduler.polls_left(0.0), requests.scheduler.polls_wanted) == (100 - 82, 10)
    requests.release_all()
    requests.scheduler.note_wanted("a", polls=0)
    assert (requests.scheduler.polls_left(60.0), requests.scheduler.polls_wanted) == (100, 6)


def test_polls_are_not_limited_without_a_limit() -> None:
    requests = Requests(UNLIMITED, 1)
    requests.add("POST /a")
    requests.add("POST /a")
    assert requests.scheduler.polls_left(0.0) == math.inf


def test_account_knows_how_many_requests_of_a_route_wait() -> None:
    account = RecordingAccount(limited(1))
    scheduler = Scheduler[Ticket](account, 100)
    assert scheduler.admit(Ticket("GET /a"), 0.0)
    for number in range(3):
        assert not scheduler.admit(Ticket("GET /a", is_poll=bool(number)), 0.0)
    assert not scheduler.admit(Ticket("GET /b"), 0.0)
    account.waiting = 0
    scheduler.release(Ticket("GET /a"), 0.0)
    assert not isinstance(scheduler.next(0.0), Ticket)
    assert account.waiting == 3


def test_call_that_is_held_back_takes_no_slot_of_the_account() -> None:
    account = RecordingAccount(limited(10))
    scheduler = Scheduler[Ticket](account, 100)
    for number in range(4):
        scheduler.note_wanted(f"project-{number}", polls=1)
    tickets = [Ticket("POST /a") for _ in range(8)]
    assert sum(scheduler.admit(ticket, 0.0) for ticket in tickets) == 6
    questions = account.questions
    scheduler.next(0.0)
    assert account.questions == questions


def test_each_step_of_a_request_is_reported_to_the_account() -> None:
    account = RecordingAccount(limited(100))
    scheduler = Scheduler[Ticket](account, 10)
    poll, call = Ticket("GET /a", is_poll=True), Ticket("GET /b")
    scheduler.admit(poll, 1.0)
    scheduler.admit(call, 2.0)
    scheduler.cancel(poll, 3.0)
    scheduler.release(call, 4.0)
    assert account.steps == [
        ("free_at", "GET /a", 1.0),
        ("take", "GET /a", 1.0),
        ("free_at", "GET /b", 2.0),
        ("take", "GET /b", 2.0),
        ("cancel", "GET /a", 3.0),
        ("release", "GET /b", 4.0),
    ]


def test_cost_of_a_grant_does_not_grow_with_the_number_of_waiting_requests() -> None:
    account = RecordingAccount(RateBudget(per_minute=None))
    scheduler = Scheduler[Ticket](account, 1)
    first = Ticket("GET /first")
    assert scheduler.admit(first, 0.0)
    for number in range(600):
        scheduler.admit(Ticket(f"POST /{number % 3}"), 0.0)
    for number in range(300):
        scheduler.admit(Ticket(f"GET /{number % 3}", is_poll=True), 0.0)
    account.questions = 0
    scheduler.release(first, 0.0)
    now, granted = 0.0, 0
    while granted < 900:
        step = scheduler.next(now)
        if isinstance(step, Ticket):
            granted += 1
            scheduler.release(step, now)
        else:
            now = step
    assert account.questions <= 900 * 6 + 100
