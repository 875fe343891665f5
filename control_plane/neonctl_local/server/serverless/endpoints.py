"""``POST /sql`` and ``/v2``: the addresses that Neon's serverless driver uses."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias, TypeVar

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web

from neonctl_local.errors import forbidden, invalid
from neonctl_local.postgres.client.messages import PostgresMessage
from neonctl_local.postgres.client.session import StatementError, startup_message
from neonctl_local.postgres.logins import ServerLogin
from neonctl_local.postgres.proxy.errors import ComputeRefusedError
from neonctl_local.postgres.proxy.messages import error_response
from neonctl_local.postgres.proxy.proxy import Arrival, Opened, Proxy
from neonctl_local.postgres.proxy.routing import find_endpoint, parse_password
from neonctl_local.server.bodies import receive_body
from neonctl_local.server.connections import connection_of, while_connected
from neonctl_local.server.memory import MemoryFullError
from neonctl_local.server.serverless import SQL_PATH, WEBSOCKET_PATH
from neonctl_local.server.serverless.inflow import Inflow
from neonctl_local.server.serverless.pool import Client, SessionPool
from neonctl_local.server.serverless.results import (
    Headers,
    Request,
    Statement,
    decode_request,
    error_json,
    result_json,
    type_ids,
)
from neonctl_local.server.serverless.statements import (
    FindLogin,
    Result,
    Rows,
    Statements,
    TooLargeError,
)
from neonctl_local.server.serverless.target import HEADER, parse_target

T = TypeVar("T")
LoginCheck: TypeAlias = Callable[[str, str, str], Awaitable[FindLogin]]

FULL_MEMORY: Final = 507
"""The status if there is no memory for a result. The statement may have changed data."""
MAXIMUM_BYTES: Final = 64 << 20
"""The largest request and the largest result, in bytes, as on Neon."""
_SLOW_BYTES: Final = 1 << 18
"""The size, in bytes, from which requests are decoded and results are encoded in a thread."""
_COPIES: Final = 4
"""The copies of an ASCII body in memory: the body, its strings, a message, and its unsent part."""
_COPIES_OF_OTHERS: Final = 3
"""The additional copies of any other body, whose characters need up to four bytes each."""
_CHUNK: Final = 1 << 16
_OUT_OF_MEMORY: Final = "53200"
_CLOSE_SECONDS: Final = 0.5
_HEADERS: Final = (
    "Authorization, Content-Type, Neon-Array-Mode, Neon-Batch-Deferrable, "
    "Neon-Batch-Isolation-Level, Neon-Batch-Read-Only, Neon-Connection-String, Neon-Pool-Opt-In, "
    "Neon-Raw-Text-Output"
)


class Serverless:
    """Serves SQL over HTTP and WebSocket, as a client of the databases' proxy.

    So the proxy's rules apply. Browsers may send SQL from the pages of ``origins``. ``changes`` is
    passed to the SessionPool. ``login_check`` takes an endpoint, a role and a database, and returns
    a function that looks up what the endpoint's server checks at that role's login.
    """

    def __init__(
        self,
        proxy: Proxy,
        origins: frozenset[str],
        changes: Callable[[], Sequence[asyncio.Event]],
        login_check: LoginCheck,
    ) -> None:
        self._proxy = proxy
        self._origins = origins
        self._login_check = login_check
        self._pool = SessionPool(self._connect, changes, self._find_check)
        self._open: set[web.WebSocketResponse] = set()

    def add_to(self, app: web.Application) -> None:
        """Add the routes."""
        app.router.add_post(SQL_PATH, self.query)
        app.router.add_options(SQL_PATH, self.preflight)
        app.router.add_get(WEBSOCKET_PATH, self.pipe, allow_head=False)

    async def close(self) -> None:
        """Close all WebSockets and idle sessions, because the server is stopping.

        Busy sessions close when their requests are done.
        """
        self._pool.close()
        closing = [one.close(code=WSCloseCode.GOING_AWAY) for one in self._open]
        with suppress(TimeoutError):  # a client may not read
            async with asyncio.timeout(_CLOSE_SECONDS):
                await asyncio.gather(*closing)

    async def query(self, request: web.Request) -> web.Response:
        """``POST /sql``: run a statement, or a batch in one transaction."""
        content: bytes | AsyncIterator[bytes]
        headers: Mapping[str, str] = {}
        try:
            status = 200
            content, headers = await while_connected(request, self._respond(request))
        except StatementError as error:
            status, content = 400, _error(error.message)
        except ValueError as error:
            status, content = 400, _error(_message(str(error)))
        except web.HTTPRequestEntityTooLarge:
            message = f"request is too large (max is {MAXIMUM_BYTES} bytes)"
            status, content = 413, _error(_message(message))
        except TooLargeError:
            message = f"response is too large (max is {MAXIMUM_BYTES} bytes)"
            status, content = 507, _error(_message(message))
        except MemoryFullError as error:
            status, content, headers = error.status, _error(_message(error.message)), error.headers
        except (EOFError, ConnectionError):
            if request.transport is None:
                raise  # the client has disconnected
            message = "the compute closed the connection: run the statement again"
            status, content = 500, _error(_message(message))
        return web.Response(
            status=status,
            body=content,
            content_type="application/json",
            headers={**headers, **self._cors(request)},
        )

    async def preflight(self, request: web.Request) -> web.Response:
        """``OPTIONS /sql``: permit the pages of allowed origins to send statements."""
        headers = {
            "Access-Control-Allow-Methods": "POST",
            "Access-Control-Allow-Headers": _HEADERS,
            "Access-Control-Max-Age": "600",
        }
        return web.Response(status=204, headers=headers | self._cors(request))

    async def pipe(self, request: web.Request) -> web.StreamResponse:
        """``/v2``: pass the bytes of the Postgres protocol through a WebSocket.

        The query parameter ``address`` may name the host of the compute.
        """
        origin = request.headers.get("Origin")
        if origin is not None and origin not in self._origins:
            raise forbidden(
                f"pages of {origin[:100]!r} may not connect: start the server with --allow-origin "
                "or allowed_origins="
            )
        address = request.query.get("address", request.host).partition(":")[0]
        arrival = Arrival(request.remote or "", address, sends_password=True)
        websocket = web.WebSocketResponse(
            max_msg_size=MAXIMUM_BYTES, compress=False, timeout=_CLOSE_SECONDS
        )
        if not websocket.can_prepare(request):
            raise invalid(
                f"{WEBSOCKET_PATH} serves WebSockets, and this request does not start one: let the "
                "driver's wsProxy name it, and send SQL over HTTP to " + SQL_PATH
            )
        client, is_logged_in = self._proxy.accept(arrival)
        inflow = Inflow(connection_of(request), is_logged_in)
        try:
            await websocket.prepare(request)
            self._open.add(websocket)
            with inflow.counted():
                await _move(websocket, client, inflow)
        finally:
            self._open.discard(websocket)
            client.close()
        return websocket

    async def _respond(self, request: web.Request) -> "_Answer":
        if "Authorization" in request.headers:
            raise ValueError(
                "missing authentication credentials: required password; tokens (authToken) are not "
                "accepted here"
            )
        target = parse_target(request.headers.get(HEADER))
        headers = Headers.of(request.headers)
        # The password comes first: a body of up to 64 MiB is only read from a client that has it.
        async with self._pool.session(Client(target, request.remote or "")) as session:
            statements, is_batch = await _read_statements(request)
            reserve = connection_of(request).reservation.add
            run = _run_batch if is_batch else _run
            results = await run(session, statements, headers, _Results(reserve))
        return await _answer(results, headers, is_batch=is_batch)

    async def _find_check(self, client: Client) -> FindLogin:
        parameters = client.target.parameters
        startup = startup_message(parameters)
        with suppress(ComputeRefusedError):  # the proxy reports the error
            compute = find_endpoint(startup, client.target.server_name)
            if compute is None:
                compute, _ = parse_password(client.target.password.encode(), startup)
            names = (compute.endpoint_id, parameters["user"], parameters["database"])
            return await self._login_check(*names)
        return _unknown

    async def _connect(self, client: Client) -> Opened:
        startup = startup_message(client.target.parameters)
        arrival = Arrival(client.address, client.target.server_name)
        try:
            return await self._proxy.open(startup, arrival, client.target.password.encode())
        except ComputeRefusedError as error:
            raise StatementError(
                PostgresMessage(severity="FATAL", message=error.message, sqlstate=error.code)
            ) from None

    def _cors(self, request: web.Request) -> dict[str, str]:
        origin = request.headers.get("Origin")
        if origin not in self._origins:
            return {}
        return {"Access-Control-Allow-Origin": origin or "", "Vary": "Origin"}


async def _unknown() -> ServerLogin | None:
    """Return None, because nothing is known about the login."""
    return None


class _Results:
    """The results of a request. All of their rows together take at most ``MAXIMUM_BYTES``.

    ``reserve`` is called before memory is allocated for the rows.
    """

    def __init__(self, reserve: Callable[[int], None]) -> None:
        self._reserve = reserve
        self._left = MAXIMUM_BYTES
        self.results: list[tuple[Statement, Result]] = []
        self.element_ids: Mapping[int, int] = {}

    @property
    def size(self) -> int:
        """The number of bytes of all rows."""
        return MAXIMUM_BYTES - self._left

    async def add(self, session: Statements, statement: Statement) -> None:
        """Run a statement and keep its result."""
        rows = Rows(self._left, self._full_result)
        result = await session.run(statement.sql, statement.parameters, rows=rows)
        statement.parameters.clear()
        self._left -= rows.size
        self.results.append((statement, result))

    def free(self) -> None:
        """Drop all rows."""
        for _, result in self.results:
            result.rows.free()

    def _full_result(self, size: int) -> None:
        try:
            self._reserve(size)
        except MemoryFullError as error:
            error.status = FULL_MEMORY
            raise

    def json(self, headers: Headers, *, is_batch: bool) -> Iterator[bytes]:
        """Yield the body of the response in pieces."""
        before = b'{"results":['
        for statement, result in self.results:
            if is_batch:
                yield before
                before = b","
            array_mode = statement.array_mode
            yield from result_json(
                result,
                self.element_ids,
                raw=headers.raw_text_output,
                array_mode=headers.array_mode if array_mode is None else array_mode,
            )
        if is_batch:
            yield b"]}" if self.results else before + b"]}"


_Answer: TypeAlias = tuple[bytes | AsyncIterator[bytes], Mapping[str, str]]


async def _read_statements(request: web.Request) -> Request:
    """Read the body of a request, and reserve memory for its strings and their messages."""
    reservation = connection_of(request).reservation
    body = await receive_body(request, MAXIMUM_BYTES, copies=_COPIES)
    if not body.isascii():
        reservation.add(_COPIES_OF_OTHERS * len(body))
    return await _convert(partial(decode_request, body, reservation.add), len(body))


async def _answer(results: _Results, headers: Headers, *, is_batch: bool) -> _Answer:
    """Return the content of a response. Large content is encoded while it is sent."""
    pieces = results.json(headers, is_batch=is_batch)
    repeated = headers.of_response if is_batch else {}
    if results.size < _SLOW_BYTES:
        return b"".join(pieces), repeated
    return _in_thread(pieces, results), repeated


async def _in_thread(pieces: Iterator[bytes], results: _Results) -> AsyncIterator[bytes]:
    try:
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            yield piece
    finally:
        results.free()  # aiohttp refers to a response until the next request of its connection


async def _run_batch(
    session: Statements, statements: Sequence[Statement], headers: Headers, results: _Results
) -> _Results:
    await session.run(headers.begin)
    try:
        await _run(session, statements, headers, results)
        await session.run("COMMIT")
    except StatementError:
        with suppress(OSError, EOFError):  # the error may have ended the session
            await session.run("ROLLBACK")
        raise
    return results


async def _run(
    session: Statements, statements: Sequence[Statement], headers: Headers, results: _Results
) -> _Results:
    for statement in statements:
        await results.add(session, statement)
    if not headers.raw_text_output:
        found = [result for _, result in results.results]
        results.element_ids = await session.element_ids(type_ids(found))
    return results


async def _convert(convert: Callable[[], T], size: int) -> T:
    return convert() if size < _SLOW_BYTES else await asyncio.to_thread(convert)


async def _move(websocket: web.WebSocketResponse, client: socket.socket, inflow: Inflow) -> None:
    """Pass bytes in both directions until one side closes its connection."""
    loop = asyncio.get_running_loop()

    async def from_server() -> None:
        with suppress(ConnectionError):
            while data := await loop.sock_recv(client, _CHUNK):
                inflow.go_on()
                await websocket.send_bytes(data)
        await websocket.close()

    async def refuse() -> None:
        message = await inflow.refused
        with suppress(ConnectionError):
            await websocket.send_bytes(error_response(message, _OUT_OF_MEMORY))
        await websocket.close(code=WSCloseCode.TRY_AGAIN_LATER)

    tasks = [asyncio.create_task(from_server()), asyncio.create_task(refuse())]
    try:
        async for message in websocket:
            if message.type != WSMsgType.BINARY:
                await websocket.close(
                    code=WSCloseCode.UNSUPPORTED_DATA, message=b"expected binary messages"
                )
                break
            await loop.sock_sendall(client, message.data)
            inflow.take(len(message.data))
    except ConnectionError:
        await websocket.close()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _message(text: str) -> PostgresMessage:
    return PostgresMessage(severity="", message=text)


def _error(message: PostgresMessage) -> bytes:
    return msgspec.json.encode(error_json(message))
