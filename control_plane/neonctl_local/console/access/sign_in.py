"""The pages to sign in and out, with a one-time link from the server or a personal API key."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from aiohttp import web

from neonctl_local.console.access import cookies
from neonctl_local.console.access.forms import CSRF, read_form
from neonctl_local.console.access.headers import comes_from_another_page
from neonctl_local.console.access.sessions import (
    Account,
    Attempts,
    ConsoleSession,
    Draft,
    Sessions,
    is_same,
    new_visitor,
)
from neonctl_local.console.rendering import Rendering
from neonctl_local.engine import api_keys
from neonctl_local.errors import ApiError, forbidden, unauthorized
from neonctl_local.server.application import CONSOLE_PATH
from neonctl_local.server.tenants.state import TenantState

_SIGN_IN: Final = f"{CONSOLE_PATH}/sign-in"
_KEPT: Final = "kept-"
"""The prefix of the fields that keep what was typed into another form."""

_LONGEST_KEPT: Final = 256 << 10
_MOST_KEPT: Final = 90
_NEVER_KEPT: Final = frozenset({CSRF, "key", "password", "token"})
_LONGEST_PATH: Final = 2000
_NEXT_STEP: Final = "sign in with an API key, or run `python -m neonctl_local link` for a new link"


class SignIn:
    """Starts and ends sessions. ``clock`` returns the time in seconds."""

    def __init__(
        self,
        tenants: Sequence[TenantState],
        sessions: Sessions[TenantState],
        rendering: Rendering,
        clock: Callable[[], float],
    ) -> None:
        self._tenants = tenants
        self._sessions = sessions
        self._rendering = rendering
        self._attempts = Attempts(clock)

    def session(self, request: web.Request) -> ConsoleSession[TenantState] | None:
        """Return the session of a request, or None unless exactly one of its cookies is valid."""
        found = [self._sessions.find(cookie) for cookie in cookies.session_cookies(request)]
        valid = [session for session in found if session is not None]
        return valid[0] if len(valid) == 1 else None

    def end(self, request: web.Request) -> None:
        """End the sessions of a browser."""
        for cookie in cookies.session_cookies(request):
            self._sessions.end(cookie)

    async def show(self, request: web.Request) -> web.StreamResponse:
        """``GET /console/sign-in``: redeem the token of a link, or show the form."""
        token = request.query.get("token", "")
        if not token:
            if self.session(request):
                return _redirect(CONSOLE_PATH)
            return self.page(request, status=200)
        if request.method == "HEAD" or "prefetch" in request.headers.get("Sec-Purpose", ""):
            # A browser that loads pages early must not use up the token.
            raise ApiError(503, "the link works once: open it", headers={"Retry-After": "1"})
        if comes_from_another_page(request):
            # Another page could sign in the person with an account that is not theirs.
            return self.page(request, status=200, token=token)
        try:
            cookie = self._redeem(request, token)
        except ApiError as error:
            if self.session(request):
                return _redirect(CONSOLE_PATH)  # the person opened the link again
            return self.page(request, error=error)
        # Not a redirect: after a link on another site, a browser does not send a strict cookie.
        return self._signed_in(request, self._continue_to(CONSOLE_PATH), cookie)

    async def submit(self, request: web.Request) -> web.StreamResponse:
        """``POST /console/sign-in``: sign in with an API key, a token, or a link with a token."""
        form = await read_form(request)
        path, draft = next_path(form.get("next", "")), _kept(form)
        visitor = cookies.visitor_cookie(request)
        expected = self._sessions.sign_in_csrf(visitor)
        try:
            if not visitor or not is_same(form.get(CSRF, ""), expected):
                raise forbidden(
                    "the form is out of date, or the browser keeps no cookies of this page: enter "
                    "the key again"
                )
            cookie = await self._cookie_for(request, form)
        except ApiError as error:
            return self.page(request, error=error, next_page=path, draft=draft)
        session = self._sessions.find(cookie)
        if session is not None and draft is not None:
            session.keep_draft(Draft(urlsplit(path).path, draft))
            session.notice = "Nothing was changed yet. Check what you typed, and send it again."
        return self._signed_in(request, _redirect(path), cookie)

    def reload(self, request: web.Request) -> web.StreamResponse:
        """Make the browser open the page again, because a link on another site opened it.

        The browser sends the session cookie only if a page of the console makes the request.
        """
        return self._continue_to(next_path(request.rel_url.raw_path_qs))

    def sign_out(self, request: web.Request) -> web.StreamResponse:
        """``POST /console/sign-out``: end the session."""
        self.end(request)
        response = _redirect(_SIGN_IN)
        cookies.delete_session(request, response)
        return response

    def page(
        self,
        request: web.Request,
        *,
        error: ApiError | None = None,
        status: int = 401,
        next_page: str | None = None,
        draft: Mapping[str, str] | None = None,
        token: str = "",
    ) -> web.Response:
        """Return the sign-in page. Signing in leads to ``next_page``, or back to this URL."""
        visitor = cookies.visitor_cookie(request) or new_visitor()
        if next_page is None:
            next_page = next_path(request.rel_url.raw_path_qs if request.method == "GET" else "")
        text = self._rendering.render(
            "sign_in.html",
            path=CONSOLE_PATH,
            csrf=self._sessions.sign_in_csrf(visitor),
            notice="",
            error=error,
            next_page=next_page,
            kept={} if draft is None else {f"{_KEPT}{name}": draft[name] for name in draft},
            is_draft=draft is not None,
            token=token,
        )
        response = web.Response(
            status=status if error is None else error.status, text=text, content_type="text/html"
        )
        response.headers.update(error.headers if error is not None else {})
        cookies.set_visitor(request, response, visitor)
        return response

    def _continue_to(self, path: str) -> web.Response:
        page = self._rendering.render("continue.html", path=path)
        return web.Response(text=page, content_type="text/html")

    def _signed_in(
        self, request: web.Request, response: web.StreamResponse, cookie: str
    ) -> web.StreamResponse:
        self.end(request)
        cookies.set_session(request, response, cookie)
        return response

    async def _cookie_for(self, request: web.Request, form: Mapping[str, str]) -> str:
        """Return the cookie of a new session. Raise ApiError if the sign-in fails."""
        typed = form.get("key", "").strip()
        token = form.get("token") or _token_of(typed)
        if token is not None:
            return self._redeem(request, token)
        if not typed:
            raise unauthorized("the API key is missing: enter a personal API key")
        self._start_attempt(request)
        account = await self._account_of(request, typed)
        self._attempts.succeeded(_address(request))
        return self._sessions.create(account)

    def _redeem(self, request: web.Request, token: str) -> str:
        # A valid token works at any time, so nobody can keep a person out with wrong attempts.
        cookie = self._sessions.redeem(token)
        if cookie is None:
            self._start_attempt(request)
            raise unauthorized(f"the link was used before or has expired: {_NEXT_STEP}")
        return cookie

    def _start_attempt(self, request: web.Request) -> None:
        seconds = math.ceil(self._attempts.seconds_to_wait(_address(request)))
        if seconds > 0:
            raise ApiError(
                429,
                f"there were too many attempts to sign in: wait {seconds} seconds",
                headers={"Retry-After": str(seconds)},
            )
        self._attempts.started(_address(request))

    async def _account_of(self, request: web.Request, key: str) -> Account[TenantState]:
        authorization = f"Bearer {key}"
        for tenant in self._tenants:
            if await tenant.issued(authorization):
                break
        else:
            raise unauthorized("the API key is unknown: enter a personal API key of this server")
        principal = await tenant.database.read(
            api_keys.authenticate, authorization, _address(request)
        )
        if principal.user_id is None:
            raise forbidden(
                f"this is the key of an organization or a project ({principal.kind}): enter a "
                "personal API key"
            )
        return Account(tenant, principal.user_id, principal.key_id)


def next_path(text: str) -> str:
    """Return a path below ``/console``, to open after the sign-in. The default is ``/console``.

    The path must not lead out of the console: browsers remove dot segments, and treat ``//host`` or
    a backslash as another site.
    """
    path = unquote(text.partition("?")[0])
    segments = path.removesuffix("/").split("/")[1:]
    if (
        len(text) > _LONGEST_PATH
        or not f"{path}/".startswith(f"{CONSOLE_PATH}/")
        or not {"", ".", ".."}.isdisjoint(segments)
        or not (text.isascii() and f"{text}{path}".isprintable())
        or " " in text
        or "\\" in f"{text}{path}"
        or path.startswith(_SIGN_IN)
    ):
        return CONSOLE_PATH
    return text


def draft_of(form: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a form without its secrets, or no fields if they are too large."""
    fields = {name: value for name, value in form.items() if name not in _NEVER_KEPT}
    is_short = len(fields) <= _MOST_KEPT and sum(map(len, fields.values())) <= _LONGEST_KEPT
    return fields if is_short else {}


def _kept(form: Mapping[str, str]) -> dict[str, str] | None:
    """Return what was typed into another form, before the person had to sign in."""
    if "is-draft" not in form:
        return None
    fields = {
        name.removeprefix(_KEPT): value for name, value in form.items() if name.startswith(_KEPT)
    }
    return draft_of(fields)


def _token_of(typed: str) -> str | None:
    """Return the token of a link, or None if the text is not a link with a token."""
    if "token=" in typed:
        return parse_qs(urlsplit(typed).query).get("token", [""])[0]
    return None


def _redirect(path: str) -> web.Response:
    return web.Response(status=303, headers={"Location": path})


def _address(request: web.Request) -> str:
    return request.remote or ""
