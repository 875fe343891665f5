"""The web application: faults, errors, authentication and routes, one log line a request."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NamedTuple

from aiohttp import web
from aiohttp.typedefs import Handler

from neonctl_async.local import background, ids, keys
from neonctl_async.local.calls import Answer, Call, Caller, error_body
from neonctl_async.local.clock import Clock, instant
from neonctl_async.local.database import Database, Transaction
from neonctl_async.local.errors import ApiError
from neonctl_async.local.faults import Fault, Faults
from neonctl_async.local.limits import Limiter
from neonctl_async.local.routes import CREATE_ORGANIZATION_KEY, ROUTES, Route
from neonctl_async.local.settings import RateLimits

BASE_PATH: Final = "/api/v2"
"""The version is part of the path (section 9)."""

MAXIMUM_BODY: Final = 1 << 20
"""The largest request body, in bytes."""

REMEMBERED_REQUESTS: Final = 10_000

_REQUEST_ID: Final = web.RequestKey("request_id", str)
_CALLER: Final = web.RequestKey("caller", Caller)
_UNANSWERED: Final = web.RequestKey("unanswered", bool)
_HTML: Final = "<html><head><title>{0}</title></head><body><h1>{0}</h1></body></html>\n"
_logger = logging.getLogger(__name__)


class ServedRequest(NamedTuple):
    """A request that came in: its path relative to the base address, and the status answered.

    The status is 0 where the connection was closed without an answer.
    """

    method: str
    path: str
    status: int


class Application:
    """Serves the routes on a database."""

    def __init__(
        self, database: Database, faults: Faults, clock: Clock, limits: RateLimits | None
    ) -> None:
        self.requests: deque[ServedRequest] = deque(maxlen=REMEMBERED_REQUESTS)
        self.requests_served = 0
        self._database = database
        self._faults = faults
        self._clock = clock
        self._limiter = Limiter(limits, CREATE_ORGANIZATION_KEY) if limits else None
        self._stopping = asyncio.Event()

    def build(self) -> web.Application:
        """The aiohttp application. The first middleware is the outermost."""
        app = web.Application(
            middlewares=[self._observe, self._spoil, self._explain, self._authenticate],
            client_max_size=MAXIMUM_BODY,
        )
        for route in ROUTES:
            app.router.add_route(route.method, BASE_PATH + route.path, self._serve(route))
        app.on_shutdown.append(self._stop)
        return app

    async def _stop(self, app: web.Application) -> None:
        del app
        self._stopping.set()

    def _serve(self, route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def serve(request: web.Request) -> web.StreamResponse:
            call = Call(
                caller=request[_CALLER],
                path=dict(request.match_info),
                query=dict(request.query),
                content=await _content(request),
            )
            answer = await self._database.run(_answer, route, call)
            return _json_response(answer.status, answer.content)

        return serve

    @web.middleware
    async def _observe(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        request_id = request.headers.get("X-Request-ID") or ids.request_id()
        request[_REQUEST_ID] = request_id
        started = time.perf_counter()
        status = 0
        try:
            response = await handler(request)
            status = 0 if request.get(_UNANSWERED) else response.status
        finally:
            path = request.path.removeprefix(BASE_PATH)
            self.requests.append(ServedRequest(request.method, path, status))
            self.requests_served += 1
            caller = request.get(_CALLER)
            _logger.info(
                "%s %s %d %.1f ms key=%s request_id=%s",
                request.method,
                request.path,
                status,
                (time.perf_counter() - started) * 1000,
                "-" if caller is None else caller.key_id,
                request_id,
            )
        return response

    @web.middleware
    async def _spoil(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        fault = self._faults.strike(_route_of(request))
        if fault is None:
            return _identified(request, await handler(request))
        await self._pause(fault.delay)
        if fault.ends and fault.when == "before":
            return await self._ruin(request, fault)
        response = _identified(request, await handler(request))
        if fault.ends:
            return await self._ruin(request, fault)
        return await _truncated(request, response) if fault.truncate else response

    async def _ruin(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        if fault.hang:
            await self._stopping.wait()
        if fault.hang or fault.drop:
            return _dropped(request)
        status = fault.status or 502
        if fault.html:
            page = _HTML.format(f"{status} {fault.message}")
            return web.Response(
                status=status, text=page, content_type="text/html", headers=fault.headers
            )
        error = ApiError(status, fault.message, code=fault.code, headers=fault.headers)
        return _identified(request, _error_response(request, error))

    async def _pause(self, seconds: float) -> None:
        if seconds:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._stopping.wait()

    @web.middleware
    async def _explain(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except ApiError as error:
            return _error_response(request, error)
        except web.HTTPException as error:
            return _error_response(request, _translated(request, error))
        except Exception:
            _logger.exception("request %s failed", request[_REQUEST_ID])
            return _error_response(request, ApiError(500, "internal server error"))

    @web.middleware
    async def _authenticate(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        # Before the handler, which for an unknown path or a wrong method is the refusal of it:
        # without a key nothing else is looked at (section 5, rule 3).
        authorization = request.headers.get("Authorization")
        caller = await self._database.run(keys.authenticate, authorization, request.remote or "")
        request[_CALLER] = caller
        if self._limiter is not None:
            self._limiter.admit(caller.account, _route_of(request), instant(self._clock()))
        return await handler(request)


def _answer(tx: Transaction, route: Route, call: Call) -> Answer:
    if project_id := call.path.get("project_id"):
        background.arrive(tx, call.caller, project_id)
        tx.keep()
    return route.handler(tx, call)


async def _content(request: web.Request) -> bytes:
    content = await request.read()
    if content and request.content_type != "application/json":
        raise ApiError(415, f"the body is {request.content_type!r}: send 'application/json'")
    return content


def _route_of(request: web.Request) -> str:
    resource = request.match_info.route.resource
    path = request.path if resource is None else resource.canonical
    return f"{request.method} {path.removeprefix(BASE_PATH)}"


def _translated(request: web.Request, error: web.HTTPException) -> ApiError:
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        message = f"{request.method} is not allowed on {request.path!r}: {allowed}"
        return ApiError(405, message, headers={"Allow": allowed})
    if isinstance(error, web.HTTPNotFound):
        return ApiError(404, f"there is no path {request.path!r}")
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return ApiError(413, f"the body is larger than {MAXIMUM_BODY} bytes")
    return ApiError(error.status, error.reason)


def _json_response(status: int, content: bytes) -> web.Response:
    if not content:
        return web.Response(status=status)
    return web.Response(status=status, body=content, content_type="application/json")


def _error_response(request: web.Request, error: ApiError) -> web.Response:
    response = _json_response(error.status, error_body(error, request[_REQUEST_ID]))
    response.headers.update(error.headers)
    return response


def _identified(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    response.headers["x-neon-ret-request-id"] = request[_REQUEST_ID]
    return response


def _dropped(request: web.Request) -> web.StreamResponse:
    request[_UNANSWERED] = True
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def _truncated(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    if not isinstance(response, web.Response) or not isinstance(response.body, bytes):
        return _dropped(request)
    half = web.StreamResponse(status=response.status, headers=response.headers)
    half.content_length = len(response.body)
    half.force_close()
    await half.prepare(request)
    await half.write(response.body[: len(response.body) // 2])
    return half
