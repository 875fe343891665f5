"""The console as a part of the server. Its pages are loaded at the first request."""

import asyncio
import importlib.util
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from aiohttp import web

from neonctl_local.console.access.headers import secure
from neonctl_local.console.access.sessions import Account, Sessions
from neonctl_local.errors import ApiError
from neonctl_local.server.application import CONSOLE_PATH
from neonctl_local.server.tenants.state import TenantState

if TYPE_CHECKING:
    from neonctl_local.console.site import Site

INSTALL: Final = "the console needs Jinja2: pip install 'neonctl-local[console]'"


class Console:
    """Serves the pages of all tenants. ``tenants`` can grow while the server runs."""

    def __init__(
        self, tenants: Sequence[TenantState], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.tenants: Final = tenants
        self.clock: Final = clock
        self.sessions: Final[Sessions[TenantState]] = Sessions(clock)
        self._site: Site | None = None
        self._loading = asyncio.Lock()

    def sign_in_path(self, tenant: TenantState, user_id: str, key_id: int | None = None) -> str:
        """Return a path with a one-time token, which signs a user in.

        The session ends when the key that requested the path is revoked. Raises RuntimeError if
        Jinja2 is not installed.
        """
        if importlib.util.find_spec("jinja2") is None:
            raise RuntimeError(INSTALL)
        token = self.sessions.new_token(Account(tenant, user_id, key_id))
        return f"{CONSOLE_PATH}/sign-in?token={token}"

    async def respond(self, request: web.Request) -> web.StreamResponse:
        """Return the response to a request for a page."""
        try:
            site = await self._load()
        except ModuleNotFoundError:
            return _without_packages()
        return await site.respond(request)

    async def refuse(self, error: ApiError) -> web.StreamResponse:
        """Return the page for an error that the server found before it read the request."""
        try:
            site = await self._load()
        except ModuleNotFoundError:
            return _without_packages()
        return site.refuse(error)

    def protect(self, response: web.StreamResponse) -> None:
        """Add the security headers to a response."""
        secure(response)

    async def close(self) -> None:
        """End all sessions and streams."""
        self.sessions.end_all()
        if self._site is not None:
            await self._site.close()

    async def _load(self) -> "Site":
        async with self._loading:
            if self._site is None:
                self._site = await asyncio.to_thread(self._new_site)
            return self._site

    def _new_site(self) -> "Site":
        from neonctl_local.console.site import Site  # noqa: PLC0415 - its packages are an extra

        return Site(self.tenants, self.sessions, self.clock)


def _without_packages() -> web.StreamResponse:
    return web.Response(status=501, text=f"{INSTALL}\n")
