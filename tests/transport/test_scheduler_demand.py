"""The demand of a scheduler and of other clients, and the cost of a grant. Times are numbers."""

import math

from neonctl_async import RateBudget
from neonctl_async.transport.account import Demand, LocalAccount
from neonctl_async.transport.scheduler import POLLS_OF_CALL, Scheduler, Ticket
from tests.transport.scheduled_requests import UNLIMITED, Requests, limited


class RecordingAccount(LocalAccount):
    """An account that records the reported demand, and counts the questions of the scheduler."""

    def __init__(self, limits: RateBudget, others: Demand | None = None) -> None:
        super().__init__(limits)
        self.reported: list[Demand] = []
        self.steps: list[tuple[str, str, float, bool | None]] = []
        self.questions = 0
        self._others = others or Demand()

    @property
    def others(self) -> Demand:
        return self._others

    def report(self, demand: Demand) -> None:
        self.reported.append(demand)

    def free_at(self, route: str, now: float, *, is_poll: bool) -> float:
        self.questions += 1
        self.steps.append(("free_at", route, now, is_poll))
        return super().free_at(route, now, is_poll=is_poll)

    def take(self, route: str, now: float, *, is_poll: bool) -> None:
        self.steps.append(("take", route, now, is_poll))
        super().take(route, now, is_poll=is_poll)

    def release(self, route: str, now: float) -> None:
        self.steps.append(("release", route, now, None))
        super().release(route, now)

    def cancel(self, route: str, now: float) -> None:
        self.steps.append(("cancel", route, now, None))
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
        10 + POLLS_OF_CALL,
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


def test_demand_of_other_clients_counts() -> None:
    account = RecordingAccount(limited(100), Demand(calls=7, polls_wanted=3, projects=2))
    scheduler = Scheduler[Ticket](account, 100)
    scheduler.note_wanted("a", polls=4)
    assert (scheduler.polls_left(0.0), scheduler.polls_wanted) == (
        100 - 7,
        7 * POLLS_OF_CALL + 3 + 4,
    )


def test_projects_of_other_clients_hold_calls_back() -> None:
    account = RecordingAccount(limited(100), Demand(projects=30))
    scheduler = Scheduler[Ticket](account, 100)
    tickets = [Ticket("POST /a") for _ in range(90)]
    assert sum(scheduler.admit(ticket, 0.0) for ticket in tickets) == 70


def test_demand_is_reported_when_it_changes() -> None:
    account = RecordingAccount(limited(100))
    scheduler = Scheduler[Ticket](account, 1)
    first, second, poll = Ticket("GET /a"), Ticket("GET /a"), Ticket("GET /a", is_poll=True)
    assert scheduler.admit(first, 0.0)
    assert account.reported == []
    for waiting in (second, poll):
        assert not scheduler.admit(waiting, 0.0)
    scheduler.note_wanted("a", polls=4)
    scheduler.release(first, 0.0)
    assert scheduler.next(0.0) is second
    scheduler.withdraw(poll)
    assert account.reported == [(1, 0, 0), (1, 0, 0), (1, 4, 1), (0, 4, 1), (0, 4, 1)]


def test_each_step_of_a_request_is_reported_to_the_account() -> None:
    account = RecordingAccount(limited(100))
    scheduler = Scheduler[Ticket](account, 10)
    poll, call = Ticket("GET /a", is_poll=True), Ticket("GET /b")
    scheduler.admit(poll, 1.0)
    scheduler.admit(call, 2.0)
    scheduler.cancel(poll, 3.0)
    scheduler.release(call, 4.0)
    assert account.steps == [
        ("free_at", "GET /a", 1.0, True),
        ("take", "GET /a", 1.0, True),
        ("free_at", "GET /b", 2.0, False),
        ("take", "GET /b", 2.0, False),
        ("cancel", "GET /a", 3.0, None),
        ("release", "GET /b", 4.0, None),
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
