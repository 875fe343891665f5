"""The pages: method, path below ``/console``, and the function that returns the page."""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from aiohttp import web

from neonctl_async.local.console.pages import projects
from neonctl_async.local.console.visits import Visit

Page = Callable[[Visit], Awaitable[web.StreamResponse]]


class PageRoute(NamedTuple):
    """A page, a form that is posted, or a stream of events.

    The page of a stream runs until ``visit.stream_end`` is set.
    """

    method: str
    path: str
    page: Page
    is_stream: bool = False

    @property
    def pattern(self) -> str:
        """The path for aiohttp. Without it, aiohttp matches no parameter with a brace."""
        return self.path.replace("}", ":[^/]+}")


PAGES: Final[tuple[PageRoute, ...]] = (
    PageRoute("GET", "", projects.show),
    PageRoute("GET", "/projects/new", projects.show_new),
    PageRoute("POST", "/projects/new", projects.create),
)
