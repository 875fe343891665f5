"""The site: finds the page of a request and the session of its person."""

import logging
from collections.abc import Callable, Sequence
from typing import Final

from aiohttp import web

from neonctl_async.local.console.forms import read_form
from neonctl_async.local.console.headers import secure
from neonctl_async.local.console.rendering import Rendering
from neonctl_async.local.console.routes import PAGES
from neonctl_async.local.console.sessions import Session, Sessions
from neonctl_async.local.console.static_files import StaticFiles
from neonctl_async.local.console.visits import Visit, read_person
from neonctl_async.local.errors import ApiError
from neonctl_async.local.server.bodies import query_parameters
from neonctl_async.local.server.tenant_state import TenantState

PATH: Final = "/console"

_logger = logging.getLogger(__name__)


class Site:
    """All pages. Creating it reads files."""

    def __init__(
        self,
        tenants: Sequence[TenantState],
        sessions: Sessions[TenantState],
        clock: Callable[[], float],
    ) -> None:
        self._tenants = tenants
        self._sessions = sessions
        self._clock = clock
        self._rendering = Rendering()
        self._static = StaticFiles()
        self._router = web.UrlDispatcher()
        self._pages = {
            self._router.add_route(page.method, f"{PATH}{page.pattern}", _unused): page
            for page in PAGES
        }
        self._static_route = self._router.add_get(f"{PATH}/static/{{name}}", _unused)
        self._sign_in_route = self._router.add_get(f"{PATH}/sign-in", _unused)

    async def respond(self, request: web.Request) -> web.StreamResponse:
        """Return the response to a request."""
        try:
            return secure(await self._respond(request))
        except ApiError as error:
            return secure(self._error(error))
        except ConnectionError:
            raise
        except Exception:
            _logger.exception("a page of the console failed")
            return secure(self._error(ApiError(500, "internal server error")))

    async def close(self) -> None:
        """End all streams."""

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        found = await self._router.resolve(request)
        if found.http_exception is not None:
            raise ApiError(found.http_exception.status, "there is no such page")
        if found.route is self._static_route:
            return self._static.respond(request, found["name"])
        if found.route is self._sign_in_route:
            return await self._sign_in(request)
        session = self._session(request)
        if session is None:
            return self._sign_in_page()
        visit = Visit(
            session=session,
            request=request,
            path=dict(found),
            query=query_parameters(request.query),
            form=await read_form(request, session.csrf) if request.method == "POST" else {},
            person=await session.tenant.database.read(read_person, session.user_id),
            rendering=self._rendering,
        )
        return await self._pages[found.route].page(visit)

    def _session(self, request: web.Request) -> Session[TenantState] | None:
        return self._sessions.find(request.cookies.get(_cookie(request), ""), self._clock())

    async def _sign_in(self, request: web.Request) -> web.StreamResponse:
        cookie = self._sessions.redeem(request.query.get("token", ""), self._clock())
        if cookie is None:
            return self._sign_in_page()
        response = web.Response(
            text=self._rendering.render("signed_in.html"), content_type="text/html"
        )
        response.set_cookie(_cookie(request), cookie, path=PATH, httponly=True, samesite="Strict")
        return response

    def _sign_in_page(self) -> web.Response:
        page = self._rendering.render("sign_in.html")
        return web.Response(status=401, text=page, content_type="text/html")

    def _error(self, error: ApiError) -> web.Response:
        page = self._rendering.render("error.html", error=error)
        return web.Response(status=error.status, text=page, content_type="text/html")


async def _unused(request: web.Request) -> web.StreamResponse:
    # The router demands a handler. The site calls the page itself, because it needs a visit.
    raise NotImplementedError


def _cookie(request: web.Request) -> str:
    # Browsers send cookies to all ports of a host.
    return f"neonctl-console-{request.url.port}"
