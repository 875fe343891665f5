"""The aiohttp application: faults, errors, authentication, routes, and one log line per request."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC
from email.utils import format_datetime
from typing import Final, Protocol

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from neonctl_local import ids
from neonctl_local.api.description.checks import check_request
from neonctl_local.api.request.calls import Call
from neonctl_local.engine import api_keys
from neonctl_local.engine.api_keys import Principal
from neonctl_local.errors import ApiError, forbidden, unauthorized
from neonctl_local.server import fault_requests, unrouted
from neonctl_local.server.admission import check_admission
from neonctl_local.server.bodies import (
    BODY_ERRORS,
    path_parameters,
    query_parameters,
    read_early,
    read_json,
    send_then_drain,
)
from neonctl_local.server.connections import Connections, connection_of, refuse_if_full
from neonctl_local.server.faults import Fault
from neonctl_local.server.http_errors import (
    BareResponse,
    error_response,
    outside_error,
    raw_response,
)
from neonctl_local.server.names import ServerNames
from neonctl_local.server.responses import respond_when_settled
from neonctl_local.server.routes import (
    FAULTS_PATH,
    FIXED_PATHS,
    LINKS_PATH,
    LOCAL_ROUTES,
    ROUTES,
    Route,
)
from neonctl_local.server.served_request import ServedRequest
from neonctl_local.server.serverless import SQL_PATH, WEBSOCKET_PATH
from neonctl_local.server.tenants.state import TenantState
from neonctl_local.settings import ConnectionLimits
from neonctl_local.storage.tables import Branch
from neonctl_local.storage.transactions import Transaction

CONSOLE_PATH: Final = "/console"
"""The path of the console's first page. The paths of all other pages are below it."""

BASE_PATH: Final = "/api/v2"
"""The base path of the API, which includes its version."""

MAXIMUM_BODY: Final = 1 << 20
"""The largest request body, in bytes."""

_NO_ORIGINS: Final[frozenset[str]] = frozenset()
_SERVERLESS: Final = frozenset({SQL_PATH, WEBSOCKET_PATH})
_REQUEST_ID: Final = re.compile(r"[!-~]{1,128}")
_HTML: Final = "<html><head><title>{0}</title></head><body><h1>{0}</h1></body></html>\n"
_logger = logging.getLogger(__name__)


class Context(msgspec.Struct):
    """The state of a request while the server handles it."""

    request_id: str
    state: TenantState
    principal: Principal | None = None
    dropped: bool = False
    has_fault: bool = False


_context: ContextVar[Context] = ContextVar("_context")


class Pages(Protocol):
    """Serves the pages of the console."""

    async def respond(self, request: web.Request) -> web.StreamResponse:
        """Return the response to a request for a path below ``/console``."""
        raise NotImplementedError

    async def refuse(self, error: ApiError) -> web.StreamResponse:
        """Return the page for an error that was found before the request was read."""
        raise NotImplementedError

    def sign_in_path(self, tenant: TenantState, user_id: str, key_id: int | None = None) -> str:
        """Return the path of a link that signs a user in once.

        The session ends when the key with the id ``key_id``, if any, is revoked.
        """
        raise NotImplementedError

    def protect(self, response: web.StreamResponse) -> None:
        """Add a page's security headers to a response, before it is sent."""

    async def close(self) -> None:
        """End all streams, because the server is stopping."""


class ServerlessRoutes(Protocol):
    """Serves SQL over HTTP and WebSocket."""

    def add_to(self, app: web.Application) -> None:
        """Add the routes."""

    async def close(self) -> None:
        """Close all sessions, because the server is stopping."""


class Application:
    """Serves the routes of all tenants. Tenants can be added while the application is running.

    Requests for ``pages`` are not API requests: no faults or rate limits apply to them. Browsers
    may use the ``serverless`` routes from the pages of ``origins``. These routes need no API key,
    because the password of a role is the credential.
    """

    def __init__(
        self,
        tenants: Sequence[TenantState],
        names: ServerNames,
        limits: ConnectionLimits,
        pages: Pages | None = None,
        serverless: ServerlessRoutes | None = None,
        origins: frozenset[str] = frozenset(),
    ) -> None:
        self._pages = pages
        self._serverless = serverless
        self._origins = origins
        self._tenants = tenants
        self._names = names
        self._limits = limits
        self._stopping = asyncio.Event()

    def build(self) -> web.Application:
        """Return the aiohttp application. The first middleware is the outermost."""
        app = web.Application(
            middlewares=[
                self._observe,
                self._check_client,
                self._serve_pages,
                self._inject_fault,
                self._handle_errors,
                self._authenticate,
            ],
            client_max_size=MAXIMUM_BODY,
        )
        for base, routes in ((BASE_PATH, ROUTES), ("", LOCAL_ROUTES)):
            for route in routes:
                path = base + route.pattern
                app.router.add_route(route.method, path, self._serve(route))
                if route.path in FIXED_PATHS:
                    app.router.add_route("*", path, unrouted.refuse_on(base))
        app.router.add_post(LINKS_PATH, self._new_link)
        for method, answer in fault_requests.ANSWERS.items():
            app.router.add_route(method, FAULTS_PATH, self._serve_plans(answer))
        if self._serverless is not None:
            self._serverless.add_to(app)
        else:
            for path in _SERVERLESS:
                app.router.add_route("*", path, _refuse_sql)
        app.on_shutdown.append(self._stop)
        app.on_response_prepare.append(self._complete_headers)
        return app

    def connections(self) -> Connections:
        """Return a new object that manages the connections to this application."""
        return Connections(self._limits, self._respond_to_error, self._refuse_head)

    def _respond_to_error(
        self, status: int, cause: BaseException | None, message: str | None
    ) -> web.Response:
        error = outside_error(status, cause, message)
        request_id = ids.uuid_text()
        _logger.info("- - %d %s request_id=%s", status, error.message, request_id)
        response = error_response(error, request_id, BareResponse)
        response.headers["x-neon-ret-request-id"] = request_id
        response.headers["Date"] = _http_date(self._tenants[0])
        return response

    def _refuse_head(self, error: ApiError) -> bytes:
        request_id = ids.uuid_text()
        _logger.info("- - %d %s request_id=%s", error.status, error.message, request_id)
        return raw_response(error, request_id, _http_date(self._tenants[0]))

    async def _stop(self, app: web.Application) -> None:
        del app
        self._stopping.set()
        if self._pages is not None:
            await self._pages.close()
        if self._serverless is not None:
            await self._serverless.close()

    def _serve(self, route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        name = str(route)

        async def serve(request: web.Request) -> web.StreamResponse:
            state, principal = _context.get().state, _context.get().principal
            assert principal is not None, "the middleware authenticates every request"
            content = await read_json(request)
            check_request(name, request.query.items(), content)
            call = Call(
                principal=principal,
                path=path_parameters(request),
                query=query_parameters(request.query),
                content=content,
            )
            response = await respond_when_settled(state, route, call, self._stopping)
            return _json_response(response.status, response.content)

        return serve

    async def _new_link(self, request: web.Request) -> web.Response:
        """Return the path of a link with which the owner of a personal key signs in."""
        del request
        state, principal = _context.get().state, _context.get().principal
        if self._pages is None:
            raise ApiError(501, "the server has no console: start it without --no-console")
        if principal is None or principal.user_id is None:
            raise forbidden("only a personal API key can sign in to the console")
        path = self._pages.sign_in_path(state, principal.user_id, principal.key_id)
        return _json_response(201, msgspec.json.encode({"path": path}))

    def _serve_plans(
        self, answer: fault_requests.Answer
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def serve(request: web.Request) -> web.StreamResponse:
            state, principal = _context.get().state, _context.get().principal
            assert principal is not None, "the middleware authenticates every request"
            await fault_requests.check_allowed(state, principal)
            content = await read_json(request)
            planned = await answer(state, content, request.query.get("id", ""))
            return _json_response(200, msgspec.json.encode(planned))

        return serve

    @web.middleware
    async def _observe(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        connection_of(request).request_started(request.content)
        requested = request.headers.get("X-Request-ID", "")
        is_valid = _REQUEST_ID.fullmatch(requested) and ids.mask(requested) == requested
        state = await self._tenant_of(request)
        context = Context(requested if is_valid else ids.uuid_text(), state)
        _context.set(context)
        received, started = state.now(), time.perf_counter()
        status = 0
        try:
            response = await handler(request)
            status = 0 if context.dropped else response.status
        except BaseException:
            connection_of(request).reservation.release()
            raise
        finally:
            seconds = time.perf_counter() - started
            method, path = ids.mask(request.method), _path_for_log(request)
            if not self._is_page(request):
                state.note(
                    ServedRequest(method, path.removeprefix(BASE_PATH), status),
                    at=received,
                    seconds=seconds,
                    principal=context.principal,
                    has_fault=context.has_fault,
                )
            _logger.info(
                "%s %s %d %.1f ms key=%s request_id=%s",
                method,
                path,
                status,
                seconds * 1000,
                context.principal.key_id if context.principal else "-",
                context.request_id,
            )
        if not request.content.is_eof() and response.status != 408:
            await send_then_drain(request, response)
        return response

    @web.middleware
    async def _check_client(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        # This runs before any fault, because faults do not count refused requests.
        try:
            refuse_if_full(connection_of(request))
            origins = self._origins if request.path in _SERVERLESS else _NO_ORIGINS
            check_admission(request, self._names, origins)
        except ApiError as error:
            if self._pages is not None and self._is_page(request):
                return await self._pages.refuse(error)
            return _identified(_error_response(error))
        return await handler(request)

    async def _complete_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers.pop("Server", None)
        if self._pages is not None and self._is_page(request):
            self._pages.protect(response)

    def _is_page(self, request: web.Request) -> bool:
        if self._pages is None:
            return False
        # A path such as /console/%2e%2e is a page too, because the rest is compared undecoded.
        path = f"{request.rel_url.raw_path}/"
        return path.startswith(f"{CONSOLE_PATH}/") or _is_browser_at_root(request)

    @web.middleware
    async def _serve_pages(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._pages is None or not self._is_page(request):
            return await handler(request)
        if _is_browser_at_root(request):
            return web.Response(status=303, headers={"Location": CONSOLE_PATH})
        try:
            return await self._pages.respond(request)
        except ConnectionError:
            return _dropped(request)  # the client has disconnected

    @web.middleware
    async def _inject_fault(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path == FAULTS_PATH:
            return await handler(request)
        state = _context.get().state
        branch = await _branch_of(state, request) if state.faults.name_branches else ()
        fault = state.faults.next_for(_route_of(request), branch)
        if fault is None:
            return _identified(await handler(request))
        _context.get().has_fault = True
        if fault.when == "before":
            if fault.delay:
                if request.path not in _SERVERLESS:  # their bodies have another limit
                    await read_early(request)
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
        except BODY_ERRORS:
            message = "the body does not match the Transfer-Encoding"
            # Nothing more can be read from this connection.
            return _error_response(ApiError(400, message, headers={"Connection": "close"}))
        except ConnectionError:
            return _dropped(request)  # the client has disconnected
        except Exception:
            _logger.exception("request %s failed", _context.get().request_id)
            return _error_response(ApiError(500, "internal server error"))

    @web.middleware
    async def _authenticate(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in _SERVERLESS:
            return await handler(request)
        # Requests for unknown paths and wrong methods pass here too: without a valid key the
        # response is always 401.
        authorizations = request.headers.getall("Authorization", ())
        if len(authorizations) > 1:
            raise unauthorized(
                f"the request has {len(authorizations)} Authorization headers: send one"
            )
        authorization = authorizations[0] if authorizations else None
        context = _context.get()
        principal = context.principal = await context.state.database.read(
            api_keys.authenticate, authorization, request.remote or ""
        )
        context.state.admit(principal.account, _route_of(request))
        return await handler(request)


async def _refuse_sql(request: web.Request) -> web.Response:
    del request
    raise ApiError(501, "SQL needs real databases: start the server with --postgres")


def _is_browser_at_root(request: web.Request) -> bool:
    """Return whether this is a browser's request for the server's root path."""
    accepts = request.headers.get("Accept", "")
    return request.method == "GET" and request.rel_url.raw_path == "/" and "text/html" in accepts


def _route_of(request: web.Request) -> str:
    resource = request.match_info.route.resource
    path = request.path if resource is None else resource.canonical
    return f"{request.method} {path.removeprefix(BASE_PATH)}"


async def _branch_of(state: TenantState, request: web.Request) -> Collection[str]:
    """Return the id and the name of the branch in the path of a request, if there is one."""
    branch_id = request.match_info.get("branch_id")
    if branch_id is None:
        return ()
    found = await state.database.read(_find_branch, branch_id)
    return (branch_id,) if found is None else (branch_id, found.name)


def _find_branch(tx: Transaction, branch_id: str) -> Branch | None:
    return tx.first(Branch, "WHERE id = ?", branch_id)


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
    return error_response(error, _context.get().request_id)


def _identified(response: web.StreamResponse) -> web.StreamResponse:
    context = _context.get()
    response.headers["x-neon-ret-request-id"] = context.request_id
    response.headers.setdefault("Date", _http_date(context.state))
    if context.state.databases is not None:
        response.headers["Neonctl-Holds-Reads"] = "?1"
    return response


def _http_date(state: TenantState) -> str:
    # The timestamps of records come from the clock of the local control plane, so the date does
    # too.
    return format_datetime(state.utc_now().astimezone(UTC), usegmt=True)


def _path_for_log(request: web.Request) -> str:
    # A path is percent-encoded, so it cannot contain a line break. Other bytes are escaped.
    path = request.rel_url.raw_path.encode("ascii", "backslashreplace").decode()
    return ids.mask(path)


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
