"""The site, which finds the page and the session that a request belongs to."""

import logging
from collections.abc import Callable, Mapping, Sequence

from aiohttp import web

from neonctl_local.console.access.forms import CSRF, read_form
from neonctl_local.console.access.headers import check_fetch, comes_from_another_page
from neonctl_local.console.access.sessions import ConsoleSession, Draft, Sessions
from neonctl_local.console.access.sign_in import SignIn, draft_of
from neonctl_local.console.access.streams import Streams
from neonctl_local.console.changes import Changes
from neonctl_local.console.rendering import shared_rendering
from neonctl_local.console.routes import PAGES, PageRoute
from neonctl_local.console.static_files import StaticFiles
from neonctl_local.console.visits import REFRESH, Visit, read_person
from neonctl_local.errors import ApiError, forbidden
from neonctl_local.server.application import CONSOLE_PATH
from neonctl_local.server.bodies import query_parameters
from neonctl_local.server.connections import connection_of
from neonctl_local.server.tenants.state import TenantState

_logger = logging.getLogger(__name__)


class Site:
    """All pages of the console. Creating a site reads files."""

    def __init__(
        self,
        tenants: Sequence[TenantState],
        sessions: Sessions[TenantState],
        clock: Callable[[], float],
    ) -> None:
        self._sessions = sessions
        self._streams = Streams(clock)
        self._changes = Changes()
        self._rendering = shared_rendering()
        self._static = StaticFiles()
        self._sign_in = SignIn(tenants, sessions, self._rendering, clock)
        self._router = web.UrlDispatcher()
        self._pages: dict[web.AbstractRoute, PageRoute] = {}
        for page in PAGES:
            for pattern in (page.pattern, "/") if page.pattern == "" else (page.pattern,):
                self._pages[self._add(page.method, pattern)] = page
        self._static_route = self._add("GET", "/static/{name}")
        self._sign_in_routes = (self._add("GET", "/sign-in"), self._add("POST", "/sign-in"))
        self._sign_out_route = self._add("POST", "/sign-out")

    async def respond(self, request: web.Request) -> web.StreamResponse:
        """Return the response to a request."""
        try:
            check_fetch(request)
            return await self._respond(request)
        except ApiError as error:
            return self.refuse(error)
        except ConnectionError:
            raise
        except Exception:
            _logger.exception("a page of the console failed")
            return self.refuse(ApiError(500, "internal server error"))

    def refuse(
        self, error: ApiError, visit: Visit | None = None, *, back: str = ""
    ) -> web.StreamResponse:
        """Return the page for an error. Without a visit, it shows nothing about a person.

        ``back`` is the path of a form that the page links to.
        """
        person = {} if visit is None else {"visit": visit, "csrf": visit.session.csrf}
        text = self._rendering.render(
            "error.html", path=CONSOLE_PATH, notice="", error=error, back=back, **person
        )
        response = web.Response(status=error.status, text=text, content_type="text/html")
        response.headers.update(error.headers)
        if error.headers.get("Connection") == "close":
            response.force_close()
        return response

    async def close(self) -> None:
        """End all streams, and stop watching projects."""
        self._streams.close()
        await self._changes.close()

    def _add(self, method: str, pattern: str) -> web.AbstractRoute:
        return self._router.add_route(method, f"{CONSOLE_PATH}{pattern}", _unused)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        found = await self._find(request)
        if found.http_exception is not None or found.route is self._static_route:
            return await self._without_session(request, found)
        if found.route in self._sign_in_routes:
            return await (
                self._sign_in.submit(request)
                if request.method == "POST"
                else self._sign_in.show(request)
            )
        form: Mapping[str, str] = {}
        page_path = ""
        if request.method == "POST":
            page_path = await self._path_of_form(request)
            form = await read_form(request)
        session = self._sign_in.session(request)
        if session is None:
            return self._sign_in_again(request, page_path, form)
        if request.method == "POST" and not session.accepts(form.get(CSRF, "")):
            session.keep_draft(Draft(page_path, draft_of(form)))
            error = forbidden("the form is out of date, and nothing was changed: open it again")
            return self.refuse(error, back=page_path)
        if found.route is self._sign_out_route:
            return self._sign_in.sign_out(request)
        return await self._visit(request, found, session, form)

    async def _without_session(
        self, request: web.Request, found: web.UrlMappingMatchInfo
    ) -> web.StreamResponse:
        error = found.http_exception
        if error is None:
            return self._static.respond(request, found["name"])
        if request.method == "GET" and error.status == 405:
            # This is the address of a form that was refused. Go to the page with the form.
            path = await self._path_of_form(request)
            return web.Response(status=303, headers={"Location": path})
        raise _no_page(error)

    async def _visit(
        self,
        request: web.Request,
        found: web.UrlMappingMatchInfo,
        session: ConsoleSession[TenantState],
        form: Mapping[str, str],
    ) -> web.StreamResponse:
        if request.method == "POST":
            form = {name: value for name, value in form.items() if name != CSRF}
        elif REFRESH not in request.headers:
            form = session.take_draft(request.rel_url.raw_path)
        visit: Visit | None = None
        try:
            database = session.tenant.database
            visit = Visit(
                session=session,
                request=request,
                path=dict(found),
                query=query_parameters(request.query),
                form=form,
                person=await database.read(read_person, session.user_id, session.key_id),
                rendering=self._rendering,
                changes=self._changes,
            )
            return await self._show(self._pages[found.route], visit)
        except ApiError as error:
            if error.status != 401:
                return self.refuse(error, visit)
            self._sign_in.end(request)
            return self._sign_in.page(request, error=error)

    async def _show(self, page: PageRoute, visit: Visit) -> web.StreamResponse:
        if not page.is_stream:
            return await page.page(visit)
        if visit.request.method == "HEAD":
            raise ApiError(405, "a stream has no HEAD: send GET", headers={"Allow": "GET"})
        connection = connection_of(visit.request)
        with self._streams.open(visit.session) as end, connection.when_lost(end.set):
            visit.stream_end = end
            return await page.page(visit)

    def _sign_in_again(
        self, request: web.Request, page_path: str, form: Mapping[str, str]
    ) -> web.StreamResponse:
        if request.method != "POST" and comes_from_another_page(request):
            return self._sign_in.reload(request)
        if request.method != "POST":
            return self._sign_in.page(request)
        return self._sign_in.page(request, next_page=page_path, draft=draft_of(form))

    async def _find(self, request: web.Request) -> web.UrlMappingMatchInfo:
        if request.method == "HEAD":
            request = request.clone(method="GET")
        return await self._router.resolve(request)

    async def _path_of_form(self, request: web.Request) -> str:
        """Return the path of the page with the form that posts to the request's path."""
        path = request.rel_url.raw_path
        while path.count("/") > 1:
            found = await self._router.resolve(request.clone(method="GET", rel_url=path))
            if found.http_exception is None:
                return path
            path = path.rpartition("/")[0]
        return CONSOLE_PATH


def _no_page(error: web.HTTPException) -> ApiError:
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        message = f"this page does not support {error.method}: expected {allowed}"
        return ApiError(405, message, headers={"Allow": allowed})
    return ApiError(error.status, "there is no such page")


async def _unused(request: web.Request) -> web.StreamResponse:
    # The router requires a handler. The site calls the page itself, because pages need a visit.
    raise NotImplementedError
