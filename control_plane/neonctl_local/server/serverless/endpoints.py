"""``POST /sql`` and ``/v2``: the addresses that Neon's serverless driver uses."""

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web

from neonctl_local.errors import forbidden, invalid
from neonctl_local.postgres.client.messages import PostgresMessage
from neonctl_local.postgres.client.session import StatementError, startup_message
from neonctl_local.postgres.proxy.errors import ComputeRefusedError
from neonctl_local.postgres.proxy.proxy import Arrival, Opened, Proxy
from neonctl_local.server.bodies import read_body
from neonctl_local.server.connections import while_connected
from neonctl_local.server.serverless import SQL_PATH, WEBSOCKET_PATH
from neonctl_local.server.serverless.pool import Client, SessionPool
from neonctl_local.server.serverless.results import (
    Batch,
    Headers,
    Query,
    decode_request,
    error_json,
    result_json,
    type_ids,
)
from neonctl_local.server.serverless.statements import Result, Statements, TooLargeError
from neonctl_local.server.serverless.target import HEADER, parse_target
from neonctl_local.server.serverless.values import Json

T = TypeVar("T")

MAXIMUM_BYTES: Final = 64 << 20
"""The largest request and the largest result, in bytes, as at Neon."""
_SLOW_BYTES: Final = 1 << 18
"""The size of a request or result from which it is decoded or encoded in a thread."""
_CHUNK: Final = 1 << 16
_CLOSE_SECONDS: Final = 0.5
_HEADERS: Final = (
    "Authorization, Content-Type, Neon-Array-Mode, Neon-Batch-Deferrable, "
    "Neon-Batch-Isolation-Level, Neon-Batch-Read-Only, Neon-Connection-String, Neon-Pool-Opt-In, "
    "Neon-Raw-Text-Output"
)


class Serverless:
    """Serves SQL over HTTP and WebSocket, as clients of the proxy of the databases.

    So the rules of the proxy apply. Browsers may use both from the pages of ``origins``.
    ``changes`` is that of the SessionPool.
    """

    def __init__(
        self,
        proxy: Proxy,
        origins: frozenset[str],
        changes: Callable[[], Sequence[asyncio.Event]],
    ) -> None:
        self._proxy = proxy
        self._origins = origins
        self._pool = SessionPool(self._connect, changes)
        self._open: set[web.WebSocketResponse] = set()

    def add_to(self, app: web.Application) -> None:
        """Add the routes."""
        app.router.add_post(SQL_PATH, self.query)
        app.router.add_options(SQL_PATH, self.preflight)
        app.router.add_get(WEBSOCKET_PATH, self.pipe, allow_head=False)

    async def close(self) -> None:
        """Close all sessions, because the server stops."""
        self._pool.close()
        closing = [one.close(code=WSCloseCode.GOING_AWAY) for one in self._open]
        with suppress(TimeoutError):  # of clients that do not read
            async with asyncio.timeout(_CLOSE_SECONDS):
                await asyncio.gather(*closing)

    async def query(self, request: web.Request) -> web.Response:
        """``POST /sql``: run a statement, or a batch in one transaction."""
        try:
            status, content = 200, await while_connected(request, self._respond(request))
            headers = Headers.of(request.headers).of_response if b'"results":' in content else {}
        except StatementError as error:
            status, content, headers = 400, _error(error.message), {}
        except ValueError as error:
            status, content, headers = 400, _error(_message(str(error))), {}
        except web.HTTPRequestEntityTooLarge:
            message = f"request is too large (max is {MAXIMUM_BYTES} bytes)"
            status, content, headers = 413, _error(_message(message)), {}
        except TooLargeError:
            message = f"response is too large (max is {MAXIMUM_BYTES} bytes)"
            status, content, headers = 507, _error(_message(message)), {}
        except (EOFError, ConnectionError):
            if request.transport is None:
                raise  # the client has disconnected
            message = "the compute closed the connection: run the statement again"
            status, content, headers = 500, _error(_message(message)), {}
        return web.Response(
            status=status,
            body=content,
            content_type="application/json",
            headers=headers | self._cors(request),
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
        """``/v2``: move the bytes of the Postgres protocol over a WebSocket.

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
        websocket = web.WebSocketResponse(max_msg_size=MAXIMUM_BYTES, compress=False)
        if not websocket.can_prepare(request):
            raise invalid(
                f"{WEBSOCKET_PATH} serves WebSockets, and this request does not start one: let the "
                "driver's wsProxy name it, and send SQL over HTTP to " + SQL_PATH
            )
        client = self._proxy.accept(arrival)
        try:
            await websocket.prepare(request)
            self._open.add(websocket)
            await _move(websocket, client)
        finally:
            self._open.discard(websocket)
            client.close()
        return websocket

    async def _respond(self, request: web.Request) -> bytes:
        if "Authorization" in request.headers:
            raise ValueError(
                "missing authentication credentials: required password; tokens (authToken) are not "
                "accepted here"
            )
        target = parse_target(request.headers.get(HEADER))
        headers = Headers.of(request.headers)
        body = await read_body(request.clone(client_max_size=MAXIMUM_BYTES))
        statements = await _convert(partial(decode_request, body), len(body))
        async with self._pool.session(Client(target, request.remote or "")) as session:
            if isinstance(statements, Query):
                return await _run(session, [statements], headers, is_batch=False)
            return await _run_batch(session, statements, headers)

    async def _connect(self, client: Client) -> Opened:
        startup = startup_message(client.target.parameters)
        arrival = Arrival(client.address, client.target.server_name)
        try:
            return await self._proxy.open(startup, arrival)
        except ComputeRefusedError as error:
            raise StatementError(
                PostgresMessage(severity="FATAL", message=error.message, sqlstate=error.code)
            ) from None

    def _cors(self, request: web.Request) -> dict[str, str]:
        origin = request.headers.get("Origin")
        if origin not in self._origins:
            return {}
        return {"Access-Control-Allow-Origin": origin or "", "Vary": "Origin"}


async def _run_batch(session: Statements, batch: Batch, headers: Headers) -> bytes:
    await session.run(headers.begin)
    try:
        content = await _run(session, batch.queries, headers, is_batch=True)
        await session.run("COMMIT")
    except StatementError:
        with suppress(OSError, EOFError):  # the error may have ended the session
            await session.run("ROLLBACK")
        raise
    return content


async def _run(
    session: Statements, queries: Sequence[Query], headers: Headers, *, is_batch: bool
) -> bytes:
    results: list[Result] = []
    size = 0
    for query in queries:
        result = await session.run(query.query, query.params, most_bytes=MAXIMUM_BYTES - size)
        size += result.size
        results.append(result)
    raw = headers.raw_text_output
    element_ids = await session.element_ids(set() if raw else type_ids(results))

    def encode() -> bytes:
        shown: list[Json] = [
            result_json(
                result,
                element_ids,
                raw=raw,
                array_mode=headers.array_mode if query.array_mode is None else query.array_mode,
            )
            for query, result in zip(queries, results, strict=True)
        ]
        return msgspec.json.encode({"results": shown} if is_batch else shown[0])

    return await _convert(encode, size)


async def _convert(convert: Callable[[], T], size: int) -> T:
    return convert() if size < _SLOW_BYTES else await asyncio.to_thread(convert)


async def _move(websocket: web.WebSocketResponse, client: socket.socket) -> None:
    """Move bytes in both directions until one side closes its connection."""
    loop = asyncio.get_running_loop()

    async def from_server() -> None:
        with suppress(ConnectionError):
            while data := await loop.sock_recv(client, _CHUNK):
                await websocket.send_bytes(data)
        await websocket.close()

    reading = asyncio.create_task(from_server())
    try:
        async for message in websocket:
            if message.type != WSMsgType.BINARY:
                await websocket.close(
                    code=WSCloseCode.UNSUPPORTED_DATA, message=b"expected binary messages"
                )
                break
            await loop.sock_sendall(client, message.data)
    except ConnectionError:
        await websocket.close()
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


def _message(text: str) -> PostgresMessage:
    return PostgresMessage(severity="", message=text)


def _error(message: PostgresMessage) -> bytes:
    return msgspec.json.encode(error_json(message))
