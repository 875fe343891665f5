"""The sessions of signed-in people, and the one-time tokens that start them.

Cookies and tokens are random. Only their hashes are stored, so the time that a lookup takes reveals
nothing about existing values. Sessions end with the server, because they are kept in memory.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from neonctl_local.console.access.created_keys import CreatedKeys

T = TypeVar("T")

LIFETIME: Final = 12 * 3600.0
"""How long a session or an unused token is valid, in seconds."""

MAXIMUM_SESSIONS: Final = 200
MAXIMUM_TOKENS: Final = 100
_LONGEST_VALUE: Final = 100


class Draft(NamedTuple):
    """The fields of a form that was not accepted, and the path of the form's page."""

    path: str
    fields: Mapping[str, str]


class NewPassword(NamedTuple):
    """The password of a role, to be shown once."""

    role: str
    password: str

    def __repr__(self) -> str:
        """Return a string without the password."""
        return f"<NewPassword of {self.role}>"


class Account(NamedTuple, Generic[T]):
    """The user of a session, and the id of the API key used to sign in or get the link, if any."""

    tenant: T
    user_id: str
    key_id: int | None = None


class ConsoleSession(Generic[T]):
    """A signed-in person: a user of a tenant."""

    def __init__(self, account: Account[T], expires_at: float) -> None:
        self.tenant: Final = account.tenant
        self.user_id: Final = account.user_id
        self.key_id: Final = account.key_id
        self.expires_at: Final = expires_at
        self.csrf: Final = secrets.token_urlsafe(32)
        self.is_ended: bool = False
        self.notice: str = ""
        self.created_keys: Final = CreatedKeys()
        self.new_password: NewPassword | None = None
        self._draft: Draft | None = None
        self._at_end: set[Callable[[], object]] = set()

    def __repr__(self) -> str:
        """Return a string that names the user, but does not contain the CSRF token."""
        return f"<ConsoleSession of user {self.user_id}>"

    def take_notice(self) -> str:
        """Return the notice for the next page, and forget it."""
        notice, self.notice = self.notice, ""
        return notice

    def take_new_password(self) -> NewPassword | None:
        """Return the password that was just created, and forget it."""
        password, self.new_password = self.new_password, None
        return password

    def keep_draft(self, draft: Draft) -> None:
        """Keep the fields of a form until its page is opened."""
        self._draft = draft

    def take_draft(self, path: str) -> Mapping[str, str]:
        """Return the fields kept for this page's form, if there are any, and forget them."""
        if self._draft is None or self._draft.path != path:
            return {}
        fields, self._draft = self._draft.fields, None
        return fields

    def accepts(self, csrf: str) -> bool:
        """Return whether ``csrf`` is the token of this session's forms."""
        return is_same(csrf, self.csrf)

    def at_end(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call a function when the session ends. Return a function that cancels the call."""
        self._at_end.add(callback)
        return lambda: self._at_end.discard(callback)

    def end(self) -> None:
        """End the session."""
        self.is_ended = True
        self.new_password = self._draft = None
        self.created_keys.clear()
        while self._at_end:
            self._at_end.pop()()


class _Token(NamedTuple, Generic[T]):
    account: Account[T]
    expires_at: float


class Sessions(Generic[T]):
    """All sessions and unused tokens. If there are too many, the oldest are dropped first.

    ``clock`` returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sessions: dict[bytes, ConsoleSession[T]] = {}
        self._tokens: dict[bytes, _Token[T]] = {}
        self._secret = secrets.token_bytes(32)

    def __len__(self) -> int:
        """Return the number of sessions."""
        return len(self._sessions)

    def new_token(self, account: Account[T]) -> str:
        """Return a token that starts one session."""
        token = secrets.token_urlsafe(32)
        while len(self._tokens) >= MAXIMUM_TOKENS:
            del self._tokens[next(iter(self._tokens))]
        self._tokens[_digest(token)] = _Token(account, self._clock() + LIFETIME)
        return token

    def redeem(self, token: str) -> str | None:
        """Start a session with a token. Return its cookie, or None if the token is not valid."""
        found = self._tokens.pop(_digest(token), None)
        if found is None or found.expires_at <= self._clock():
            return None
        return self.create(found.account)

    def create(self, account: Account[T]) -> str:
        """Start a session. Return its cookie."""
        now = self._clock()
        for digest, session in list(self._sessions.items()):
            if session.expires_at > now and len(self._sessions) < MAXIMUM_SESSIONS:
                break  # the first session is the oldest
            del self._sessions[digest]
            session.end()
        cookie = secrets.token_urlsafe(32)
        self._sessions[_digest(cookie)] = ConsoleSession(account, now + LIFETIME)
        return cookie

    def find(self, cookie: str) -> ConsoleSession[T] | None:
        """Return the session of a cookie, or None if it does not exist or has expired."""
        if len(cookie) > _LONGEST_VALUE:
            return None
        session = self._sessions.get(_digest(cookie))
        if session is not None and session.expires_at <= self._clock():
            self.end(cookie)
            return None
        return session

    def end(self, cookie: str) -> None:
        """End the session of a cookie, if there is one."""
        session = self._sessions.pop(_digest(cookie), None)
        if session is not None:
            session.end()

    def end_all(self) -> None:
        """End all sessions and forget all tokens, because the server is stopping."""
        self._tokens.clear()
        while self._sessions:
            _, session = self._sessions.popitem()
            session.end()

    def sign_in_csrf(self, visitor: str) -> str:
        """Return the token of the sign-in form for a visitor, who has no session yet.

        ``visitor`` is the random value of the visitor's cookie.
        """
        return hmac.new(self._secret, _encoded(visitor), hashlib.sha256).hexdigest()


class Attempts:
    """Limits the failed attempts to sign in from each address.

    An attempt is counted before its key is checked, so simultaneous attempts are limited too.
    """

    MAXIMUM: Final = 10
    PERIOD: Final = 60.0
    ADDRESSES: Final = 256

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._times: dict[str, list[float]] = {}

    def __len__(self) -> int:
        """Return the number of addresses with attempts."""
        return len(self._times)

    def seconds_to_wait(self, address: str) -> float:
        """Return the seconds until the next attempt is allowed, or 0 if it is allowed now."""
        times = self._recent(address)
        if len(times) < self.MAXIMUM:
            return 0.0
        return times[0] + self.PERIOD - self._clock()

    def started(self, address: str) -> None:
        """Count an attempt."""
        times = self._recent(address)
        times.append(self._clock())
        self._times.pop(address, None)
        while len(self._times) >= self.ADDRESSES:
            del self._times[next(iter(self._times))]
        self._times[address] = times[-self.MAXIMUM :]

    def succeeded(self, address: str) -> None:
        """Forget the attempts from an address, because one succeeded."""
        self._times.pop(address, None)

    def _recent(self, address: str) -> list[float]:
        since = self._clock() - self.PERIOD
        return [at for at in self._times.get(address, ()) if at > since]


def new_visitor() -> str:
    """Return a new cookie value for a visitor without a session."""
    return secrets.token_urlsafe(32)


def is_same(sent: str, expected: str) -> bool:
    """Compare two secrets in a time that does not reveal how similar they are."""
    return hmac.compare_digest(_encoded(sent), _encoded(expected))


def _digest(value: str) -> bytes:
    return hashlib.sha256(_encoded(value)).digest()


def _encoded(value: str) -> bytes:
    # aiohttp decodes invalid UTF-8 in a header to surrogates, which a plain encode() rejects.
    return value.encode(errors="surrogateescape")
