"""The two cookies of the console: one for a session, one for the sign-in form."""

from collections.abc import Sequence

from aiohttp import web

from neonctl_local.console.access.sessions import LIFETIME
from neonctl_local.server.application import CONSOLE_PATH


def session_cookies(request: web.Request) -> Sequence[str]:
    """Return all values of the session cookie.

    Other servers on the same host can add values, because cookies ignore ports.
    """
    return _values(request, _session_name(request))


def visitor_cookie(request: web.Request) -> str:
    """Return the value of the sign-in form's cookie, or "" unless there is exactly one."""
    values = _values(request, _visitor_name(request))
    return values[0] if len(values) == 1 else ""


def set_session(request: web.Request, response: web.StreamResponse, value: str) -> None:
    """Set the session cookie."""
    _set(response, _session_name(request), value, round(LIFETIME))


def set_visitor(request: web.Request, response: web.StreamResponse, value: str) -> None:
    """Set the cookie of the sign-in form."""
    _set(response, _visitor_name(request), value, None)


def delete_session(request: web.Request, response: web.StreamResponse) -> None:
    """Make the browser delete its session cookie."""
    _set(response, _session_name(request), "", 0)


def _set(response: web.StreamResponse, name: str, value: str, max_age: int | None) -> None:
    response.set_cookie(
        name, value, path=CONSOLE_PATH, max_age=max_age, httponly=True, samesite="Strict"
    )


def _values(request: web.Request, name: str) -> Sequence[str]:
    pairs = ";".join(request.headers.getall("Cookie", ())).split(";")
    named = (pair.strip().partition("=") for pair in pairs)
    return list({value: None for sent, _, value in named if sent == name})


def _session_name(request: web.Request) -> str:
    # The port is part of the name: browsers send cookies to all ports of a host.
    return f"neonctl-console-{request.url.port}"


def _visitor_name(request: web.Request) -> str:
    return f"neonctl-console-{request.url.port}-sign-in"
