"""Long lists, which have a thread of their own."""

import pytest

from neonctl_local.api.request.calls import Call
from neonctl_local.engine.api_keys import Principal
from neonctl_local.server.lists import is_long
from neonctl_local.server.routes import ROUTES

PRINCIPAL = Principal(
    key_id=1, kind="personal", created_by="u", user_id="u", org_id=None, project_id=None
)
OPERATIONS = "GET /projects/{project_id}/operations"
BRANCHES = "GET /projects/{project_id}/branches"


@pytest.mark.parametrize(
    ("name", "limit", "long"),
    [
        ("GET /api_keys", None, True),
        ("GET /projects", None, False),
        ("GET /projects", "400", True),
        (OPERATIONS, None, False),
        (OPERATIONS, "100", False),
        (OPERATIONS, "101", True),
        (OPERATIONS, "1000", True),
        (OPERATIONS, "x", True),
        (BRANCHES, None, True),
        (BRANCHES, "", True),
        (BRANCHES, "10", False),
        ("GET /projects/{project_id}", None, False),
        ("GET /organizations/{org_id}/invitations", None, True),
        ("GET /consumption_history/v2/projects", "10", True),
    ],
)
def test_lists_of_more_than_a_hundred_rows_and_of_consumption_are_long(
    name: str, limit: str | None, *, long: bool
) -> None:
    (route,) = [route for route in ROUTES if str(route) == name]
    query = {} if limit is None else {"limit": limit}
    assert is_long(route, Call(principal=PRINCIPAL, path={}, query=query)) is long
