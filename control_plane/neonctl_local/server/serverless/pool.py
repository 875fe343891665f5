"""Postgres sessions that several requests use in turn. Each request gets a clean session."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from neonctl_local.postgres.client.session import StatementError, WireSession
from neonctl_local.postgres.proxy.proxy import Opened
from neonctl_local.server.serverless.statements import FindLogin, Statements
from neonctl_local.server.serverless.target import Target

SESSIONS: Final = 20
"""The largest number of sessions for one connection string. Further requests wait for a session."""
IDLE_SECONDS: Final = 10.0
"""The time after which an unused session is closed. Until then, its database cannot be dropped."""


class Client(NamedTuple):
    """The database that a request names, and the IP address of the client that sent it."""

    target: Target
    address: str

    @property
    def key(self) -> tuple[object, ...]:
        """What two requests must share to use the same session."""
        parameters = frozenset(self.target.parameters.items())
        return parameters, self.target.password, self.target.server_name, self.address


class SessionPool:
    """The sessions of all connection strings.

    ``connect`` returns a connection through the proxy, which gets the address of the client.
    ``changes`` returns events that are set when rules of the proxy may have changed. Sessions that
    were opened before such a change are not used again. ``find_check`` returns a function that asks
    the server about the login of a client. A session is only used again if the server would accept
    a new session.
    """

    def __init__(
        self,
        connect: Callable[[Client], Awaitable[Opened]],
        changes: Callable[[], Sequence[asyncio.Event]],
        find_check: Callable[[Client], Awaitable[FindLogin]],
    ) -> None:
        self._connect = connect
        self._find_check = find_check
        self._changes = changes
        self._idle: defaultdict[tuple[object, ...], list[Statements]] = defaultdict(list)
        self._slots: dict[tuple[object, ...], asyncio.Semaphore] = {}
        self._users: defaultdict[tuple[object, ...], int] = defaultdict(int)
        self._timers: dict[Statements, asyncio.TimerHandle] = {}
        self._is_closed = False

    @asynccontextmanager
    async def session(self, client: Client) -> AsyncGenerator[Statements]:
        """Provide a clean session. Cancel its statement if the request is cancelled."""
        key = client.key
        self._users[key] += 1
        slots = self._slots.setdefault(key, asyncio.Semaphore(SESSIONS))
        try:
            async with slots:
                statements = await self._take(client)
                try:
                    yield statements
                except (asyncio.CancelledError, ConnectionError):
                    await statements.cancel()
                    raise
                finally:
                    await self._give_back(key, statements)
        finally:
            self._users[key] -= 1
            if not self._users[key]:
                del self._users[key], self._slots[key]

    def close(self) -> None:
        """Close the idle sessions, and the others when they are returned."""
        self._is_closed = True
        for statements, timer in self._timers.items():
            timer.cancel()
            statements.session.abort()
        self._timers.clear()
        self._idle.clear()

    async def _take(self, client: Client) -> Statements:
        key = client.key
        while idle := self._idle.get(key):
            statements = idle.pop()
            if not idle:
                del self._idle[key]
            self._timers.pop(statements).cancel()
            if statements.is_outdated:
                statements.session.abort()
                continue
            try:
                await statements.finish_cleaning()
                if await statements.would_be_accepted():
                    return statements
            except (StatementError, OSError, EOFError):  # the compute was suspended
                pass
            except BaseException:
                statements.session.abort()
                raise
            statements.session.abort()
        changes = self._changes()
        find_login = await self._find_check(client)
        # The result is never newer than what the server checks at the login below.
        login = await find_login()
        reader, writer, cancel, secret = await self._connect(client)
        session = WireSession(reader, writer)
        try:
            await session.log_in(client.target.password, secret)
        except BaseException:
            session.abort()
            raise
        return Statements(session, cancel, changes, find_login, login)

    async def _give_back(self, key: tuple[object, ...], statements: Statements) -> None:
        if self._is_closed or not statements.can_be_reused or statements.is_outdated:
            statements.session.abort()
            return
        try:
            await statements.start_cleaning()
        except BaseException:
            statements.session.abort()
            raise
        self._idle[key].append(statements)
        self._timers[statements] = asyncio.get_running_loop().call_later(
            IDLE_SECONDS, self._expire, key, statements
        )

    def _expire(self, key: tuple[object, ...], statements: Statements) -> None:
        del self._timers[statements]
        self._idle[key].remove(statements)
        if not self._idle[key]:
            del self._idle[key]
        statements.session.abort()
