"""The endpoints that are served: method, path relative to the base address, function."""

from collections.abc import Callable
from typing import Final, NamedTuple

from neonctl_async.local import accounts, branches, endpoints, keys, operations, projects
from neonctl_async.local.calls import Answer, Call
from neonctl_async.local.database import Transaction

Handler = Callable[[Transaction, Call], Answer]


class Route(NamedTuple):
    """One endpoint."""

    method: str
    path: str
    handler: Handler

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


_PROJECT = "/projects/{project_id}"
_BRANCH = f"{_PROJECT}/branches/{{branch_id}}"
_ENDPOINT = f"{_PROJECT}/endpoints/{{endpoint_id}}"
_ORGANIZATION = "/organizations/{org_id}"
_MEMBER = f"{_ORGANIZATION}/members/{{member_id}}"

CREATE_ORGANIZATION_KEY: Final = f"POST {_ORGANIZATION}/api_keys"
"""The route with a rate limit of its own."""

ROUTES: Final = (
    Route("GET", "/users/me", accounts.me),
    Route("GET", "/users/me/organizations", accounts.list_mine),
    Route("GET", "/auth", accounts.auth_details),
    Route("GET", "/api_keys", keys.list_personal),
    Route("POST", "/api_keys", keys.create_personal),
    Route("DELETE", "/api_keys/{key_id}", keys.revoke_personal),
    Route("GET", _ORGANIZATION, accounts.get_organization),
    Route("GET", f"{_ORGANIZATION}/members", accounts.list_members),
    Route("GET", _MEMBER, accounts.get_member),
    Route("PATCH", _MEMBER, accounts.update_member),
    Route("DELETE", _MEMBER, accounts.delete_member),
    Route("GET", f"{_ORGANIZATION}/api_keys", keys.list_organization),
    Route("POST", f"{_ORGANIZATION}/api_keys", keys.create_organization),
    Route("DELETE", f"{_ORGANIZATION}/api_keys/{{key_id}}", keys.revoke_organization),
    Route("GET", "/projects", projects.list_page),
    Route("POST", "/projects", projects.create),
    Route("GET", "/projects/shared", projects.list_shared),
    Route("GET", _PROJECT, projects.get),
    Route("DELETE", _PROJECT, projects.delete),
    Route("GET", f"{_PROJECT}/operations", operations.list_page),
    Route("GET", f"{_PROJECT}/operations/{{operation_id}}", operations.get),
    Route("GET", f"{_PROJECT}/branches", branches.list_page),
    Route("POST", f"{_PROJECT}/branches", branches.create),
    Route("GET", f"{_PROJECT}/branches/count", branches.count),
    Route("GET", _BRANCH, branches.get),
    Route("DELETE", _BRANCH, branches.delete),
    Route("GET", f"{_BRANCH}/endpoints", endpoints.list_branch),
    Route("GET", f"{_PROJECT}/endpoints", endpoints.list_project),
    Route("POST", f"{_PROJECT}/endpoints", endpoints.create),
    Route("GET", _ENDPOINT, endpoints.get),
)
