"""The sessions of signed-in people, and the one-time tokens that start them."""

import secrets
from typing import Final, Generic, NamedTuple, TypeVar

T = TypeVar("T")

LIFETIME: Final = 12 * 3600.0
"""How long a session is valid, in seconds."""


class NewPassword(NamedTuple):
    """The password of a role, to show it once."""

    role: str
    password: str


class Session(Generic[T]):
    """A signed-in person: a user of a tenant."""

    def __init__(self, tenant: T, user_id: str, expires_at: float) -> None:
        self.tenant = tenant
        self.user_id = user_id
        self.expires_at = expires_at
        self.csrf = secrets.token_urlsafe(32)
        self.notice = ""
        self.created_key: str | None = None
        self.new_password: NewPassword | None = None

    def take_notice(self) -> str:
        """Return the notice for the next page, once."""
        notice, self.notice = self.notice, ""
        return notice

    def take_created_key(self) -> str | None:
        """Return the API key that was just created, once."""
        key, self.created_key = self.created_key, None
        return key

    def take_new_password(self) -> NewPassword | None:
        """Return the password that was just created, once."""
        password, self.new_password = self.new_password, None
        return password


class Sessions(Generic[T]):
    """All sessions and unused tokens."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session[T]] = {}
        self._tokens: dict[str, tuple[T, str]] = {}

    def new_token(self, tenant: T, user_id: str) -> str:
        """Return a token that starts one session of a user."""
        token = secrets.token_urlsafe(32)
        self._tokens[token] = (tenant, user_id)
        return token

    def redeem(self, token: str, now: float) -> str | None:
        """Start the session of a token. Return its cookie, or None if the token is not valid."""
        found = self._tokens.pop(token, None)
        return None if found is None else self.create(*found, now)

    def create(self, tenant: T, user_id: str, now: float) -> str:
        """Start a session. Return its cookie."""
        cookie = secrets.token_urlsafe(32)
        self._sessions[cookie] = Session(tenant, user_id, now + LIFETIME)
        return cookie

    def find(self, cookie: str, now: float) -> Session[T] | None:
        """Return the session of a cookie, or None if there is none or it has expired."""
        session = self._sessions.get(cookie)
        return session if session is not None and session.expires_at > now else None

    def end(self, cookie: str) -> None:
        """End a session."""
        self._sessions.pop(cookie, None)
