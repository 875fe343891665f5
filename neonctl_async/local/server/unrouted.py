"""Errors for requests that no route handles: unknown paths, wrong methods, other endpoints."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from neonctl_async.local.api.description import unserved
from neonctl_async.local.errors import ApiError
from neonctl_async.local.server.routes import ROUTE_NAMES


def error_for(
    request: web.Request, error: web.HTTPNotFound | web.HTTPMethodNotAllowed, base_path: str
) -> ApiError:
    """Return the 404, 405 or 501 for a request without a route."""
    path = request.rel_url.raw_path
    if path.startswith(f"{base_path}/"):
        return unserved.refusal(request.method, path.removeprefix(base_path), ROUTE_NAMES)
    if isinstance(error, web.HTTPMethodNotAllowed):
        return unserved.method_not_allowed(request.method, path, error.allowed_methods)
    return ApiError(404, f"there is no path {request.path!r}: all paths start with {base_path}")


def refuse(method: str, path: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Return the handler of all other methods of a path that has one method.

    Without this handler, another route takes the last part of the path for an id.
    """

    async def handler(request: web.Request) -> web.StreamResponse:
        raise unserved.method_not_allowed(request.method, path, [method])

    return handler
