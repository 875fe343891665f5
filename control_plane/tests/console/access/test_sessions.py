"""Sessions, one-time tokens and bounded attempts, on a clock of the test."""

import pytest

from neonctl_local.console.access import sessions as module
from neonctl_local.console.access.created_keys import CreatedKey
from neonctl_local.console.access.sessions import (
    LIFETIME,
    MAXIMUM_SESSIONS,
    MAXIMUM_TOKENS,
    Account,
    Attempts,
    Draft,
    Sessions,
)

KEY = CreatedKey(
    key_id="1",
    name="laptop",
    token="neon_api_key_1",
    access="It has access to a project.",
    example="/users/me",
    back="/account/keys",
)


class Clock:
    """A clock in seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> Sessions[str]:
    return Sessions(clock)


def test_token_starts_one_session(sessions: Sessions[str]) -> None:
    token = sessions.new_token(Account("tenant", "user"))
    cookie = sessions.redeem(token)
    assert cookie is not None
    session = sessions.find(cookie)
    assert session is not None
    assert (session.tenant, session.user_id, session.key_id) == ("tenant", "user", None)
    assert sessions.redeem(token) is None


def test_session_and_token_expire(sessions: Sessions[str], clock: Clock) -> None:
    token = sessions.new_token(Account("tenant", "user"))
    cookie = sessions.create(Account("tenant", "user"))
    session = sessions.find(cookie)
    clock.now += LIFETIME
    assert sessions.redeem(token) is None
    assert sessions.find(cookie) is None
    assert session is not None
    assert session.is_ended


@pytest.mark.parametrize("value", ["", "x", "\udcff", "x" * 101, "x" * 100_000, "neonctl"])
def test_unknown_values_find_nothing(sessions: Sessions[str], value: str) -> None:
    assert sessions.find(value) is None
    assert sessions.redeem(value) is None
    sessions.end(value)


def test_values_are_long_random_and_stored_as_hashes_only(sessions: Sessions[str]) -> None:
    tokens = {sessions.new_token(Account("tenant", "user")) for _ in range(3)}
    cookie = sessions.create(Account("tenant", "user"))
    assert len(tokens) == 3
    assert min(map(len, (*tokens, cookie))) >= 43
    assert not any(value in repr(vars(sessions)) for value in (*tokens, cookie))


def test_oldest_token_and_oldest_session_are_dropped(sessions: Sessions[str]) -> None:
    tokens = [sessions.new_token(Account("tenant", "user")) for _ in range(MAXIMUM_TOKENS + 1)]
    assert sessions.redeem(tokens[0]) is None
    assert sessions.redeem(tokens[1]) is not None
    cookies = [sessions.create(Account("tenant", "user")) for _ in range(MAXIMUM_SESSIONS)]
    found = [sessions.find(cookie) is not None for cookie in cookies]
    assert found == [True] * MAXIMUM_SESSIONS
    sessions.create(Account("tenant", "user"))
    assert [sessions.find(cookie) is not None for cookie in cookies[:2]] == [False, True]


def test_expired_sessions_are_dropped_first(sessions: Sessions[str], clock: Clock) -> None:
    for _ in range(3):
        sessions.create(Account("tenant", "user"))
    clock.now += LIFETIME
    sessions.create(Account("tenant", "user"))
    assert len(sessions) == 1


def test_end_of_a_session_calls_back_and_forgets_secrets(sessions: Sessions[str]) -> None:
    cookie = sessions.create(Account("tenant", "user"))
    session = sessions.find(cookie)
    assert session is not None
    called: list[str] = []
    session.at_end(lambda: called.append("kept"))
    cancel = session.at_end(lambda: called.append("cancelled"))
    cancel()
    session.created_keys.keep(KEY)
    session.keep_draft(Draft("/console", {"name": "typed"}))
    sessions.end(cookie)
    assert (called, session.is_ended, sessions.find(cookie)) == (["kept"], True, None)
    assert (session.created_keys.take("1"), session.take_draft("/console")) == (None, {})


def test_stop_ends_all_sessions_and_tokens(sessions: Sessions[str]) -> None:
    token = sessions.new_token(Account("tenant", "user"))
    cookies = [sessions.create(Account("tenant", "user")) for _ in range(2)]
    sessions.end_all()
    assert [sessions.find(cookie) for cookie in cookies] == [None, None]
    assert sessions.redeem(token) is None


def test_notice_and_draft_are_returned_once(sessions: Sessions[str]) -> None:
    session = sessions.find(sessions.create(Account("tenant", "user")))
    assert session is not None
    session.notice = "done"
    assert [session.take_notice(), session.take_notice()] == ["done", ""]
    session.keep_draft(Draft("/console/projects/new", {"name": "typed"}))
    assert session.take_draft("/console") == {}
    assert session.take_draft("/console/projects/new") == {"name": "typed"}
    assert session.take_draft("/console/projects/new") == {}


def test_token_of_forms_belongs_to_one_session_and_is_not_shown(sessions: Sessions[str]) -> None:
    first, second = (sessions.find(sessions.create(Account("tenant", "user"))) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.accepts(first.csrf)
    for other in (second.csrf, "", "\udcff", first.csrf[:-1], first.csrf + "x"):
        assert not first.accepts(other)
    assert first.csrf not in repr(first)


def test_token_of_the_sign_in_form_belongs_to_a_visitor_and_a_start(clock: Clock) -> None:
    first, second = Sessions[str](clock), Sessions[str](clock)
    visitor = module.new_visitor()
    assert first.sign_in_csrf(visitor) == first.sign_in_csrf(visitor)
    assert first.sign_in_csrf(visitor) != first.sign_in_csrf(module.new_visitor())
    assert first.sign_in_csrf(visitor) != second.sign_in_csrf(visitor)


def test_attempts_of_an_address_are_bounded_in_a_sliding_minute(clock: Clock) -> None:
    attempts = Attempts(clock)
    for _ in range(Attempts.MAXIMUM):
        assert attempts.seconds_to_wait("a") == 0
        attempts.started("a")
        clock.now += 1
    assert attempts.seconds_to_wait("a") == 50
    assert attempts.seconds_to_wait("b") == 0
    clock.now += 50
    assert attempts.seconds_to_wait("a") == 0
    attempts.started("a")
    assert attempts.seconds_to_wait("a") == 1


def test_success_forgets_the_attempts_of_its_address(clock: Clock) -> None:
    attempts = Attempts(clock)
    for _ in range(Attempts.MAXIMUM):
        attempts.started("a")
    attempts.succeeded("a")
    assert attempts.seconds_to_wait("a") == 0


def test_addresses_are_bounded(clock: Clock) -> None:
    attempts = Attempts(clock)
    for number in range(1000):
        for _ in range(Attempts.MAXIMUM + 1):
            attempts.started(str(number))
    assert attempts.seconds_to_wait("999") > 0
    assert attempts.seconds_to_wait("0") == 0
    assert len(attempts) == Attempts.ADDRESSES
