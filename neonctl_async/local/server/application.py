"""The aiohttp application: faults, errors, authentication, routes, and one log line per request."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC
from email.utils import format_datetime
from typing import TYPE_CHECKING, Final

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from neonctl_async.local import ids
from neonctl_async.local.api.branch_data.schemas import SchemaRead
from neonctl_async.local.api.description.checks import check_request
from neonctl_async.local.api.request import access
from neonctl_async.local.api.request.calls import Call, Response, error_body
from neonctl_async.local.engine import api_keys, background
from neonctl_async.local.engine.api_keys import Principal
from neonctl_async.local.errors import ApiError
from neonctl_async.local.server import unrouted
from neonctl_async.local.server.faults import Fault
from neonctl_async.local.server.routes import FIXED_PATHS, LOCAL_ROUTES, ROUTES, Route
from neonctl_async.local.server.tenant_state import ServedRequest, TenantState
from neonctl_async.local.storage.transactions import Transaction

if TYPE_CHECKING:
    from multidict import MultiMapping

BASE_PATH: Final = "/api/v2"
"""The version is part of the path (section 9)."""

LOCAL_PATH: Final = "/local/v1"
"""The start of the paths of requests that Neon's API does not have."""

MAXIMUM_BODY: Final = 1 << 20
"""The largest request body, in bytes."""

_DRAIN_SECONDS: Final = 1.0

_REQUEST_ID: Final = re.compile(r"[!-~]{1,128}")
_HTML: Final = "<html><head><title>{0}</title></head><body><h1>{0}</h1></body></html>\n"
_logger = logging.getLogger(__name__)


class Context(msgspec.Struct):
    """The state of a request while the server handles it."""

    request_id: str
    state: TenantState
    principal: Principal | None = None
    dropped: bool = False


_context: ContextVar[Context] = ContextVar("_context")


class Application:
    """Serves the routes of all tenants. Tenants can be added while the application runs."""

    def __init__(self, tenants: Sequence[TenantState]) -> None:
        self._tenants = tenants
        self._stopping = asyncio.Event()

    def build(self) -> web.Application:
        """Return the aiohttp application. The first middleware is the outermost."""
        app = web.Application(
            middlewares=[
                self._observe,
                self._inject_fault,
                self._handle_errors,
                self._authenticate,
            ],
            client_max_size=MAXIMUM_BODY,
        )
        for base, routes in ((BASE_PATH, ROUTES), (LOCAL_PATH, LOCAL_ROUTES)):
            for route in routes:
                path = base + route.path
                app.router.add_route(
                    route.method, path, self._serve(route), expect_handler=_continue_if_expected
                )
                if route.path in FIXED_PATHS:
                    app.router.add_route("*", path, unrouted.refuse_on(BASE_PATH))
        app.on_shutdown.append(self._stop)
        return app

    async def _stop(self, app: web.Application) -> None:
        del app
        self._stopping.set()

    def _serve(self, route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        name = str(route)

        async def serve(request: web.Request) -> web.StreamResponse:
            state, principal = _context.get().state, _context.get().principal
            assert principal is not None, "the middleware authenticates every request"
            content = await _content(request)
            check_request(name, request.query.items(), content)
            call = Call(
                principal=principal,
                path=_path_parameters(request),
                query=_joined(request.query),
                content=content,
            )
            response = await state.database.run(_respond, route, call)
            if state.databases is not None:
                state.databases.runner.wake()
                if isinstance(response, SchemaRead):
                    response = await state.databases.read(response)
            assert isinstance(response, Response), "without Postgres, no schema is read"
            return _json_response(response.status, response.content)

        return serve

    @web.middleware
    async def _observe(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        requested = request.headers.get("X-Request-ID", "")
        is_valid = _REQUEST_ID.fullmatch(requested) and ids.mask(requested) == requested
        state = await self._tenant_of(request)
        context = Context(requested if is_valid else ids.uuid_text(), state)
        _context.set(context)
        started = time.perf_counter()
        status = 0
        try:
            response = await handler(request)
            status = 0 if context.dropped else response.status
        finally:
            # The raw path is percent-encoded, so it cannot contain a line break.
            path = ids.mask(request.rel_url.raw_path)
            relative = path.removeprefix(BASE_PATH)
            state.note(ServedRequest(request.method, relative, status))
            _logger.info(
                "%s %s %d %.1f ms key=%s request_id=%s",
                request.method,
                path,
                status,
                (time.perf_counter() - started) * 1000,
                context.principal.key_id if context.principal else "-",
                context.request_id,
            )
        if not request.content.is_eof():
            await _send_then_drain(request, response)
        return response

    @web.middleware
    async def _inject_fault(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        fault = _context.get().state.faults.next_for(_route_of(request))
        if fault is None:
            return _identified(await handler(request))
        if fault.when == "before":
            if fault.delay:
                await _read_body(request)
                await self._pause(fault.delay)
            if fault.suppresses_response:
                return await self._apply_fault(request, fault)
        response = _identified(await handler(request))
        if fault.when == "after":
            await self._pause(fault.delay)
        if fault.suppresses_response:
            return await self._apply_fault(request, fault)
        return await _truncated(request, response) if fault.truncate else response

    async def _apply_fault(self, request: web.Request, fault: Fault) -> web.StreamResponse:
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
        return _identified(_error_response(error))

    async def _tenant_of(self, request: web.Request) -> TenantState:
        """Return the tenant that issued the key of a request, or the first tenant."""
        first, *others = self._tenants
        for state in others:
            if await state.issued(request.headers.get("Authorization")):
                return state
        return first

    async def _pause(self, seconds: float) -> None:
        if seconds:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._stopping.wait()

    @web.middleware
    async def _handle_errors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except ApiError as error:
            return _error_response(error)
        except web.HTTPException as error:
            return _error_response(_translated(request, error))
        except web.RequestPayloadError:
            response = _error_response(
                ApiError(400, "the body does not match its Content-Encoding")
            )
            response.force_close()  # nothing more can be read from this connection
            return response
        except ConnectionError:
            return _dropped(request)  # the client has disconnected
        except Exception:
            _logger.exception("request %s failed", _context.get().request_id)
            return _error_response(ApiError(500, "internal server error"))

    @web.middleware
    async def _authenticate(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        # Requests for unknown paths and wrong methods pass here too: without a valid key the
        # response is always 401 (section 5, rule 3).
        authorization = request.headers.get("Authorization")
        context = _context.get()
        principal = context.principal = await context.state.database.run(
            api_keys.authenticate, authorization, request.remote or ""
        )
        context.state.admit(principal.account, _route_of(request))
        return await handler(request)


def _respond(tx: Transaction, route: Route, call: Call) -> Response | SchemaRead:
    api_keys.check_not_revoked(tx, call.principal)
    if project_id := call.path.get("project_id"):
        project = access.find_project(tx, call.principal, project_id)
        if project is not None and project.deleted_at is None:
            background.on_project_request(tx, project)
            tx.commit()
    return route.handler(tx, call)


async def _continue_if_expected(request: web.Request) -> None:
    # The default handler of aiohttp rejects other expectations before the key is checked.
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")


class MaskTokens(logging.Filter):
    """Keeps tokens, and tracebacks that quote received bytes, out of the log of the server."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Mask the record and let it pass."""
        reason = f": {record.exc_info[1]}" if record.exc_info else ""
        record.msg, record.args = ids.mask(f"{record.getMessage()}{reason}"), ()
        record.exc_info = record.exc_text = None
        return True


server_logger: Final = logging.getLogger(f"{__name__}.server")
server_logger.addFilter(MaskTokens())


def _path_parameters(request: web.Request) -> dict[str, str]:
    # The ids of operations, members and the like are UUIDs, which are equal in any case. Names of
    # roles and databases are not.
    return {
        name: ids.canonical(value) if name.endswith("_id") else value
        for name, value in request.match_info.items()
    }


async def _content(request: web.Request) -> bytes:
    content = await request.read()
    if content and request.content_type != "application/json":
        raise ApiError(415, f"the body is {request.content_type!r}: send 'application/json'")
    return content


def _joined(query: "MultiMapping[str]") -> dict[str, str]:
    # A list can be sent as repeated parameters, or as one parameter with commas.
    return {name: ",".join(query.getall(name)) for name in query}


async def _read_body(request: web.Request) -> None:
    # Reading the body now keeps the request of a client that disconnects during the delay. A body
    # that is too large is rejected later.
    with suppress(OSError, web.HTTPRequestEntityTooLarge, web.RequestPayloadError):
        await request.read()


async def _send_then_drain(request: web.Request, response: web.StreamResponse) -> None:
    # Closing a connection with an unread body resets it, and the client loses the response.
    # aiohttp drains too, but in a task that outlives the connection and the server.
    with suppress(OSError, web.RequestPayloadError):
        await response.prepare(request)
        await response.write_eof()
        async with asyncio.timeout(_DRAIN_SECONDS):
            while not request.content.is_eof():
                await request.content.readany()


def _route_of(request: web.Request) -> str:
    resource = request.match_info.route.resource
    path = request.path if resource is None else resource.canonical
    return f"{request.method} {path.removeprefix(BASE_PATH)}"


def _translated(request: web.Request, error: web.HTTPException) -> ApiError:
    if isinstance(error, (web.HTTPMethodNotAllowed, web.HTTPNotFound)):
        return unrouted.error_for(request, error, BASE_PATH)
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return ApiError(413, f"the body is larger than {MAXIMUM_BODY} bytes")
    return ApiError(error.status, error.reason)


def _json_response(status: int, content: bytes) -> web.Response:
    if not content:
        return web.Response(status=status)
    return web.Response(status=status, body=content, content_type="application/json")


def _error_response(error: ApiError) -> web.Response:
    response = _json_response(error.status, error_body(error, _context.get().request_id))
    response.headers.update(error.headers)
    return response


def _identified(response: web.StreamResponse) -> web.StreamResponse:
    context = _context.get()
    response.headers["x-neon-ret-request-id"] = context.request_id
    # Timestamps of records are on the clock of the local control plane, so the date is too.
    date = format_datetime(context.state.utc_now().astimezone(UTC), usegmt=True)
    response.headers.setdefault("Date", date)
    return response


def _dropped(request: web.Request) -> web.StreamResponse:
    _context.get().dropped = True
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
