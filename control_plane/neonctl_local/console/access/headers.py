"""The headers that protect all responses, and the refusal of requests that other pages send."""

from typing import Final

from aiohttp import web

from neonctl_local.errors import forbidden

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The content security policy: no inline script or style, no other origin, no frame."""

HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With no-referrer, browsers would send "Origin: null" with the forms of this page.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}

_OTHER_SITES: Final = frozenset({"cross-site", "same-site"})


def secure(response: web.StreamResponse) -> None:
    """Add the headers to a response. Forbid caching, unless the response sets ``Cache-Control``."""
    response.headers.update(HEADERS)
    response.headers.setdefault("Cache-Control", "no-store")


def comes_from_another_page(request: web.Request) -> bool:
    """Return whether a page of another origin sent the request, or linked to this page.

    Old browsers and other programs do not send ``Sec-Fetch-Site``, so its absence means nothing.
    """
    return request.headers.get("Sec-Fetch-Site", "") in _OTHER_SITES


def check_fetch(request: web.Request) -> None:
    """Raise 403 for a request that a page of another origin sent.

    Another page may link to the console. It may not load or post anything: another port of
    the same host counts as the same site, so the browser would send the cookie.
    """
    if not comes_from_another_page(request):
        return
    is_link = (
        request.method in {"GET", "HEAD"}
        and request.headers.get("Sec-Fetch-Mode") == "navigate"
        and request.headers.get("Sec-Fetch-Dest") == "document"
    )
    if not is_link:
        raise forbidden("a page of another site sent the request: open the console itself")
