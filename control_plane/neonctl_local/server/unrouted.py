"""Errors for requests that no route handles, such as requests for unsupported endpoints."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from neonctl_local.api.description import unserved
from neonctl_local.errors import ApiError
from neonctl_local.server.routes import LOCAL_PATH, ROUTE_NAMES


def error_for(
    request: web.Request, error: web.HTTPNotFound | web.HTTPMethodNotAllowed, base_path: str
) -> ApiError:
    """Return the 404, 405 or 501 for a request without a route."""
    path = request.rel_url.raw_path
    if path.startswith(f"{base_path}/"):
        return unserved.refusal(request.method, path.removeprefix(base_path), ROUTE_NAMES)
    if isinstance(error, web.HTTPMethodNotAllowed):
        return unserved.method_not_allowed(request.method, path, error.allowed_methods)
    if path == base_path:
        hint = f"add the path of an endpoint, such as {base_path}/projects"
    elif path.startswith(f"{LOCAL_PATH}/"):
        hint = f"{LOCAL_PATH} has users, organizations and invitations"
    else:
        hint = f"all paths start with {base_path}"
    return ApiError(404, f"there is no path {request.path!r}: {hint}")


def refuse_on(base_path: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Return the handler for the methods that a fixed path does not support.

    Without this handler, another route would mistake the last part of the path for an id.
    """

    async def refuse(request: web.Request) -> web.StreamResponse:
        path = request.rel_url.raw_path.removeprefix(base_path)
        raise unserved.refusal(request.method, path, ROUTE_NAMES)

    return refuse
