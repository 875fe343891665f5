"""The lists that may take many milliseconds. They have a thread of their own."""

from typing import Final

from neonctl_async.local.api import (
    api_keys,
    branches,
    endpoints,
    operations,
    organizations,
    projects,
    snapshots,
)
from neonctl_async.local.api.project_access import permissions
from neonctl_async.local.api.request.calls import Call
from neonctl_async.local.server.routes import Handler, Route

SHORT_PAGE: Final = 100
"""The largest number of rows of a short page."""

_PAGED: Final[frozenset[Handler]] = frozenset(
    {operations.list_page, projects.list_page, projects.list_shared}
)
"""The lists with short pages by default."""

_UNLIMITED: Final[frozenset[Handler]] = frozenset(
    {
        api_keys.list_personal,
        api_keys.list_organization,
        branches.list_page,
        endpoints.list_project,
        organizations.list_members,
        permissions.list_project,
        snapshots.list_project,
    }
)
"""The lists that are complete by default."""


def is_long(route: Route, call: Call) -> bool:
    """Return whether a request can list more than a short page."""
    if route.handler not in _PAGED and route.handler not in _UNLIMITED:
        return False
    limit = call.query.get("limit", "")
    if limit.isdecimal() and len(limit) <= len(str(SHORT_PAGE)):
        return int(limit) > SHORT_PAGE
    return bool(limit) or route.handler in _UNLIMITED
