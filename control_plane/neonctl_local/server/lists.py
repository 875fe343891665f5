"""The list requests that may take many milliseconds, and therefore run in a thread for lists."""

from collections.abc import Hashable
from typing import Final

from neonctl_local.api import (
    api_keys,
    branches,
    endpoints,
    operations,
    projects,
    snapshots,
)
from neonctl_local.api.billing import consumption
from neonctl_local.api.people import accounts, invitations, organizations
from neonctl_local.api.project_access import members, permissions
from neonctl_local.api.request.calls import Call
from neonctl_local.api.services import credentials, custom_domains
from neonctl_local.server.routes import Handler, Route

SHORT_PAGE: Final = 100
"""The largest number of rows on a short page."""

SHORT_BYTES: Final = 32 * 1024
"""The largest size of a short page, in bytes. A page of 100 operations takes 30 kB."""

_REMEMBERED: Final = 10_000

_PAGED: Final[frozenset[Handler]] = frozenset(
    {operations.list_page, projects.list_page, projects.list_shared}
)
"""The lists that are returned in short pages unless a request sets ``limit``."""

_UNLIMITED: Final[frozenset[Handler]] = frozenset(
    {
        accounts.list_invitations,
        accounts.list_users,
        api_keys.list_personal,
        api_keys.list_organization,
        branches.list_page,
        credentials.list_branch,
        custom_domains.list_branch,
        endpoints.list_project,
        invitations.list_organization,
        members.list_project,
        organizations.list_members,
        permissions.list_project,
        snapshots.list_project,
    }
)
"""The lists that are returned in full unless a request sets ``limit``."""

_COMPUTED: Final[frozenset[Handler]] = frozenset(
    {consumption.list_projects_legacy, consumption.list_projects, consumption.list_branches}
)
"""The lists whose rows are computed from many operations."""


class ShortLists:
    """Requests that could return long lists, but whose last response was short.

    They can skip the thread for long lists.
    """

    def __init__(self) -> None:
        self._keys: dict[Hashable, None] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._keys

    def note(self, key: Hashable, length: int) -> None:
        """Record the length of a response, in bytes."""
        self._keys.pop(key, None)
        if length <= SHORT_BYTES:
            self._keys[key] = None
        if len(self._keys) > _REMEMBERED:
            del self._keys[next(iter(self._keys))]


def is_long(route: Route, call: Call) -> bool:
    """Return whether a response can be longer than a short page, or its rows must be computed."""
    if route.handler in _COMPUTED:
        return True
    if route.handler not in _PAGED and route.handler not in _UNLIMITED:
        return False
    limit = call.query.get("limit", "")
    if limit.isdecimal() and len(limit) <= len(str(SHORT_PAGE)):
        return int(limit) > SHORT_PAGE
    return bool(limit) or route.handler in _UNLIMITED
