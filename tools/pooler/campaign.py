"""The campaign: half of the clients send any messages and leave, the others behave well.

- A well-behaved client receives what it would receive from Postgres, within ``PATIENCE`` seconds.
- In the end no connection is left, and the pool has as many servers as at the start.
"""

import asyncio
import socket
import struct
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, Final

import psycopg

from control_plane.tests.postgres.proxy.conversations import (
    FRAMES,
    draw_turn,
    split,
    summary,
)
from control_plane.tests.postgres.proxy.model import TABLE, Model
from control_plane.tests.postgres.proxy.server import DATABASE, PASSWORD, ROLE, Server
from tests.support.until import until

PATIENCE: Final = 20.0
"""The seconds that an answer may take. It takes milliseconds."""
CLIENTS: Final = 12
"""The number of well-behaved clients, and of others."""
CONVERSATION: Final = 300
"""The number of messages of a client that sends any messages."""
BATCH: Final = 10
"""The mean number of messages, or of groups of them, that it sends at once."""
TURNS: Final = 20
"""The number of turns of a well-behaved client."""
SENSIBLE: Final = 0.95
"""The share of messages that would not end the connection."""
_CLOSE_WAIT: Final = "08"
_RESET: Final = struct.pack("ii", 1, 0)
_NONE: Final = "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'"


class Campaign:
    """One campaign against one pooler. Without ``names``, it keeps no prepared statements."""

    def __init__(
        self,
        server: Server,
        login: dict[str, Any],
        random: Random,
        *,
        is_ours: bool = True,
        names: bool = True,
    ) -> None:
        self.violations: list[str] = []
        self._counts: Counter[str] = Counter()
        self._server = server
        self._login = login | {"sslmode": "disable", "gssencmode": "disable"}
        self._direct = {
            "host": str(server.directory), "dbname": DATABASE, "user": ROLE, "password": PASSWORD,
        }  # fmt: skip
        self._random = random
        self._is_ours = is_ours
        self._names = names
        self._seconds = 0.0

    async def run(self, frames: int) -> None:
        """Send about ``frames`` messages that make no sense, beside well-behaved clients."""
        await self._execute("DROP TABLE IF EXISTS copied", TABLE)
        started = time.monotonic()
        async with asyncio.TaskGroup() as group:
            busy = [group.create_task(self._misbehave_for(frames)) for _ in range(CLIENTS)]
            done = asyncio.gather(*busy)
            for _ in range(CLIENTS):
                group.create_task(self._behave_until(done))
        self._seconds = time.monotonic() - started
        await self._check_end()

    def report(self) -> str:
        """Return what was done, and how often a well-behaved client was let down."""
        return (
            f"{self._counts['frames']} messages in {self._counts['conversations']} conversations,"
            f" {self._counts['turns']} turns of well-behaved clients in {self._seconds:.0f} s:"
            f" {self._counts['wrong']} wrong, {self._counts['hung']} hung,"
            f" {self._counts['left']} connections left"
        )

    async def _misbehave_for(self, frames: int) -> None:
        while self._counts["frames"] < frames:
            try:
                async with asyncio.timeout(PATIENCE), self._connection(self._login) as sock:
                    await self._misbehave(sock)
            except (TimeoutError, psycopg.OperationalError) as error:
                self._fail("hung", f"a new client could not start: {error!r}")

    async def _misbehave(self, sock: socket.socket) -> None:
        loop, model = asyncio.get_running_loop(), Model()
        reading = asyncio.create_task(_discard(sock))
        frames: list[bytes] = []
        try:
            for _ in range(self._random.randint(1, CONVERSATION // BATCH)):
                frames = [self._draw(model) for _ in range(self._random.randint(1, 2 * BATCH))]
                self._counts["frames"] += sum(len(split(frame)) for frame in frames)
                with suppress(OSError):
                    await loop.sock_sendall(sock, b"".join(frames))
                if self._random.random() < 0.2:
                    await asyncio.sleep(self._random.uniform(0, 0.003))
            if self._random.random() < 0.3:
                with suppress(OSError):
                    await loop.sock_sendall(sock, frames[0][: self._random.randrange(5)])
            self._counts["conversations"] += 1
        finally:
            reading.cancel()
            await asyncio.wait([reading])
        if self._random.random() < 0.3:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

    def _draw(self, model: Model) -> bytes:
        """Return a message, or a few that belong together."""
        while True:
            frame = self._random.choice(FRAMES)
            ends = model.is_copying and frame[:1] not in b"dcfSH"
            if frame[:1] in b"PBD" and not model.is_skipping and frame[5:6]:
                name = frame[5:-1].split(b"\0")[frame[:1] == b"B"].removeprefix(b"S").decode()
                ends = ends or (bool(name) and (name in model.statements) == (frame[:1] == b"P"))
            if not ends or self._random.random() > SENSIBLE:
                model.feed(frame)
                return frame

    async def _behave_until(self, done: "asyncio.Future[Any]") -> None:
        while not done.done():
            try:
                async with (
                    self._connection(self._login) as pooled,
                    self._connection(self._direct) as direct,
                ):
                    for _ in range(TURNS):
                        if not await self._compare(pooled, direct):
                            break
            except (TimeoutError, psycopg.OperationalError) as error:
                self._fail("hung", f"a well-behaved client could not connect: {error!r}")

    async def _compare(self, pooled: socket.socket, direct: socket.socket) -> bool:
        """Take a turn on both connections. Return whether the answers are equal."""
        turns = self._random.randint(1, 3)
        sent = b"".join(draw_turn(self._random, names=self._names) for _ in range(turns))
        count = sum(one[:1] == b"Z" for one in split(Model().feed(sent)))
        wanted = summary(await _ask(direct, sent, count))
        self._counts["turns"] += 1
        try:
            answered = await _ask(pooled, sent, count)
        except TimeoutError:
            self._fail("hung", f"no answer to {sent!r}")
            return False
        if summary(answered) != wanted:
            self._fail("wrong", f"{summary(answered)} instead of {wanted} for {sent!r}")
            return False
        return True

    async def _check_end(self) -> None:
        """See that no connection is left, and that the pool has not become smaller."""
        size = 20  # PgBouncer's pool has 20 servers here, ours has 27
        try:
            async with asyncio.timeout(PATIENCE):
                clients = [await self._psycopg(self._login) for _ in range(size)]
                await asyncio.gather(*(client.execute("BEGIN") for client in clients))
                for client in clients:
                    await client.close()
        except (TimeoutError, psycopg.OperationalError) as error:
            self._fail("hung", f"the pool does not serve {size} clients at once: {error!r}")
        port = int(self._login["port"])
        if not await _soon(lambda: asyncio.to_thread(lambda: not _count_half_closed(port))):
            self._counts["left"] += _count_half_closed(port)
            self.violations.append("connections of clients that have left are open")
        # PgBouncer keeps its servers.
        if self._is_ours and not await _soon(self._has_no_server):
            self._counts["left"] += 1
            self.violations.append("a server is open without a client")

    async def _has_no_server(self) -> bool:
        return bool(await self._execute(_NONE))

    def _fail(self, kind: str, line: str) -> None:
        self._counts[kind] += 1
        self.violations.append(line)

    async def _execute(self, *statements: str) -> object:
        async with await self._psycopg(self._direct) as connection:
            cursor = None
            for statement in statements:
                cursor = await connection.execute(statement.encode())
            row = await cursor.fetchone() if cursor and cursor.description else None
            return row[0] if row else None

    async def _psycopg(self, login: dict[str, Any]) -> psycopg.AsyncConnection[Any]:
        return await psycopg.AsyncConnection.connect(**login, autocommit=True)

    @asynccontextmanager
    async def _connection(self, login: dict[str, Any]) -> AsyncGenerator[socket.socket]:
        """Log in, and yield the socket of the session."""
        async with asyncio.timeout(PATIENCE):
            connection = await self._psycopg(login)
        sock = socket.socket(fileno=connection.fileno())
        try:
            yield sock
        finally:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.detach()
            await connection.close()


async def _soon(condition: Callable[[], Awaitable[bool]]) -> bool:
    """Wait until a condition is true. Return False if it takes too long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            await until(condition, every=0.1)
            return True
    return False


async def _discard(sock: socket.socket) -> None:
    with suppress(OSError):
        while await asyncio.get_running_loop().sock_recv(sock, 65536):
            pass


async def _ask(sock: socket.socket, sent: bytes, count: int) -> bytes:
    """Return the answers up to ReadyForQuery number ``count``, or to the end of the connection."""
    loop = asyncio.get_running_loop()
    received, whole = b"", 0
    async with asyncio.timeout(PATIENCE):
        with suppress(OSError):
            await loop.sock_sendall(sock, sent)
            while count:
                received += (part := await loop.sock_recv(sock, 65536))
                if not part:
                    break
                while len(received) >= whole + 5:
                    end = whole + 1 + int.from_bytes(received[whole + 1 : whole + 5])
                    if len(received) < end:
                        break
                    count -= received[whole : whole + 1] == b"Z"
                    whole = end
    return received[:whole]


def _count_half_closed(port: int) -> int:
    """Return the number of server-side sockets on a port whose client has left."""
    try:
        lines = Path("/proc/net/tcp").read_text(encoding="utf-8").splitlines()[1:]
    except OSError:
        return 0
    fields = [line.split() for line in lines]
    return sum(
        one[3] == _CLOSE_WAIT and int(one[1].partition(":")[2], 16) == port for one in fields
    )
