"""A visit: a signed-in person's request for a page."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Concatenate, Final, ParamSpec, TypeVar

import msgspec
from aiohttp import web

from neonctl_local.api.description.checks import check_request
from neonctl_local.api.request.calls import Call
from neonctl_local.clock import in_seconds
from neonctl_local.console.access.sessions import ConsoleSession
from neonctl_local.console.changes import Changes
from neonctl_local.console.rendering import Rendering
from neonctl_local.engine import accounts
from neonctl_local.engine.api_keys import Principal
from neonctl_local.errors import ApiError, unauthorized
from neonctl_local.server.application import CONSOLE_PATH
from neonctl_local.server.responses import respond
from neonctl_local.server.routes import LOCAL_ROUTES, ROUTES
from neonctl_local.server.tenants.state import TenantState
from neonctl_local.storage.tables import ApiKey, Organization, User
from neonctl_local.storage.transactions import Transaction

P = ParamSpec("P")
T = TypeVar("T")

REFRESH: Final = "Console-Refresh"
"""The header that a script sends with a request that updates a page."""

_VALID: Final = "WHERE id = ? AND ended_at IS NULL"
_ROUTES: Final = {str(route): route for route in (*ROUTES, *LOCAL_ROUTES)}


class Person(msgspec.Struct, frozen=True):
    """The signed-in person, for the header of a page."""

    user: User
    organizations: list[Organization]
    is_first: bool
    """True if the person is the first user, who may plan faults."""


def read_person(tx: Transaction, user_id: str, key_id: int | None) -> Person:
    """Return a person. Raise 401 if the user or the key used to sign in is no longer valid."""
    user = tx.first(User, "WHERE id = ?", user_id)
    if user is None:
        raise unauthorized("your account was deleted: sign in again")
    if key_id is not None and tx.first(ApiKey, _VALID, key_id) is None:
        raise unauthorized("the API key that you signed in with was revoked: sign in again")
    mine = "WHERE id IN (SELECT org_id FROM members WHERE user_id = ?) ORDER BY created_at, rowid"
    organizations = tx.select(Organization, mine, user_id)
    return Person(user, organizations, accounts.is_first_user(tx, user_id))


class Visit:
    """A signed-in person's request for a page.

    ``path`` contains the decoded path parameters, and ``form`` the fields of a posted form.
    """

    def __init__(
        self,
        *,
        session: ConsoleSession[TenantState],
        request: web.Request,
        path: Mapping[str, str],
        query: Mapping[str, str],
        form: Mapping[str, str],
        person: Person,
        rendering: Rendering,
        changes: Changes,
    ) -> None:
        self.session: Final = session
        self.state: Final = session.tenant
        self.request: Final = request
        self.path: Final = path
        self.query: Final = query
        self.form: Final = form
        self.person: Final = person
        self.changes: Final = changes
        self.principal: Final = Principal(
            key_id=None,
            kind="personal",
            created_by=session.user_id,
            user_id=session.user_id,
            org_id=None,
            project_id=None,
        )
        self.stream_end: asyncio.Event = asyncio.Event()
        """Set when a stream of events must end, for example because the client has disconnected."""
        self._rendering = rendering

    @property
    def is_refresh(self) -> bool:
        """True if a script requests the page to update an open page, which then gets no notice."""
        return REFRESH in self.request.headers

    @property
    def lacks_history(self) -> bool:
        """True if branches are Postgres databases whose history is not kept."""
        databases = self.state.databases
        return databases is not None and not databases.keeps_history

    async def call(
        self,
        name: str,
        kind: type[T],
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        **path: str,
    ) -> T:
        """Send an API request as this person, and return the decoded response.

        ``name`` is the name of a route: ``"GET /projects/{project_id}"``. ``path`` contains its
        parameters. An empty response is decoded as ``null``. Raises ApiError.
        """
        query = query or {}
        content = b"" if body is None else msgspec.json.encode(body)
        check_request(name, query.items(), content)
        call = Call(principal=self.principal, path=path, query=query, content=content)
        response = await respond(self.state, _ROUTES[name], call)
        return msgspec.json.decode(response.content or b"null", type=kind)

    async def read(
        self, function: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Read data that no API request returns."""
        return await self.state.database.read(function, *args, **kwargs)

    def typed(self, name: str, default: str = "") -> str:
        """Return what was typed into a field of the posted form, to show it again."""
        return self.form.get(name, default)

    def page(
        self,
        template: str,
        /,
        *,
        error: ApiError | None = None,
        status: int | None = None,
        **context: object,
    ) -> web.Response:
        """Return a page. The default status is that of ``error``, or 200."""
        text = self._rendering.render(
            template,
            visit=self,
            path=CONSOLE_PATH,
            csrf=self.session.csrf,
            notice="" if self.is_refresh else self.session.take_notice(),
            now=in_seconds(self.state.now()),
            error=error,
            **context,
        )
        status = status or (error.status if error is not None else 200)
        return web.Response(status=status, text=text, content_type="text/html")

    def redirect(self, path: str, notice: str = "") -> web.Response:
        """Return a redirect to a page, which shows the notice once."""
        self.session.notice = notice
        return web.Response(status=303, headers={"Location": f"{CONSOLE_PATH}{path}"})
