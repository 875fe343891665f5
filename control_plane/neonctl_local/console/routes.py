"""For each page: its method, its path below ``/console``, and the function that returns it."""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from aiohttp import web

from neonctl_local.console.pages import (
    branches,
    computes,
    connections,
    databases,
    faults,
    operations,
    project,
    project_changes,
    projects,
    requests,
    restores,
    roles,
    statements,
    streams,
)
from neonctl_local.console.pages.people import (
    invitations,
    keys,
    live,
    members,
    organization_keys,
    organizations,
    users,
)
from neonctl_local.console.visits import Visit

Page = Callable[[Visit], Awaitable[web.StreamResponse]]


class PageRoute(NamedTuple):
    """A page, a form that is posted, or a stream of events.

    The function of a stream runs until ``visit.stream_end`` is set.
    """

    method: str
    path: str
    page: Page
    is_stream: bool = False

    @property
    def pattern(self) -> str:
        """The path as an aiohttp pattern whose parameters also match values that contain braces."""
        return self.path.replace("}", ":[^/]+}")


_PROJECT: Final = "/projects/{project_id}"
_BRANCH: Final = f"{_PROJECT}/branches/{{branch_id}}"
_COMPUTE: Final = f"{_PROJECT}/computes/{{endpoint_id}}"
_ORGANIZATION = "/organizations/{org_id}"
_KEYS = f"{_ORGANIZATION}/keys"
_MEMBER = f"{_ORGANIZATION}/members/{{member_id}}"
_INVITATION = f"{_ORGANIZATION}/invitations/{{invitation_id}}"

PAGES: Final[tuple[PageRoute, ...]] = (
    PageRoute("GET", "", projects.show),
    PageRoute("GET", "/projects/new", projects.show_new),
    PageRoute("POST", "/projects/new", projects.create),
    PageRoute("GET", "/projects/deleted", project_changes.show_deleted),
    PageRoute("GET", "/projects/{project_id}", project.show),
    PageRoute("GET", "/projects/{project_id}/rename", project_changes.show_rename),
    PageRoute("POST", "/projects/{project_id}/rename", project_changes.rename),
    PageRoute("GET", "/projects/{project_id}/delete", project_changes.show_delete),
    PageRoute("POST", "/projects/{project_id}/delete", project_changes.delete),
    PageRoute("GET", "/projects/{project_id}/operations", operations.show),
    PageRoute("GET", "/projects/{project_id}/changes", streams.project_changes, is_stream=True),
    PageRoute("GET", "/projects/{project_id}/recover", project_changes.to_deleted),
    PageRoute("POST", "/projects/{project_id}/recover", project_changes.recover),
    PageRoute("GET", f"{_BRANCH}/connection", connections.show),
    PageRoute("POST", f"{_BRANCH}/connection", connections.show_password),
    PageRoute("GET", f"{_BRANCH}/databases/new", databases.show_new),
    PageRoute("POST", f"{_BRANCH}/databases/new", databases.create),
    PageRoute("GET", f"{_BRANCH}/databases/delete", databases.show_delete),
    PageRoute("POST", f"{_BRANCH}/databases/delete", databases.delete),
    PageRoute("GET", f"{_BRANCH}/roles/new", roles.show_new),
    PageRoute("POST", f"{_BRANCH}/roles/new", roles.create),
    PageRoute("GET", f"{_BRANCH}/roles/delete", roles.show_delete),
    PageRoute("POST", f"{_BRANCH}/roles/delete", roles.delete),
    PageRoute("GET", f"{_BRANCH}/roles/reset", roles.show_reset),
    PageRoute("POST", f"{_BRANCH}/roles/reset", roles.reset),
    PageRoute("GET", f"{_BRANCH}/roles/password", roles.show_new_password),
    PageRoute("POST", f"{_BRANCH}/roles/password", roles.show_password),
    PageRoute("GET", f"{_PROJECT}/branches/new", branches.show_new),
    PageRoute("POST", f"{_PROJECT}/branches/new", branches.create),
    PageRoute("GET", f"{_PROJECT}/branches", project.show_branches),
    PageRoute("GET", f"{_PROJECT}/branches/deleted", branches.show_deleted),
    PageRoute("GET", _BRANCH, branches.show),
    PageRoute("POST", f"{_BRANCH}/rename", branches.rename),
    PageRoute("POST", f"{_BRANCH}/expiry", branches.set_expiry),
    PageRoute("POST", f"{_BRANCH}/protection", branches.set_protection),
    PageRoute("POST", f"{_BRANCH}/default", branches.set_default),
    PageRoute("GET", f"{_BRANCH}/delete", branches.show_delete),
    PageRoute("POST", f"{_BRANCH}/delete", branches.delete),
    PageRoute("POST", f"{_BRANCH}/recover", branches.recover),
    PageRoute("GET", f"{_BRANCH}/reset", restores.show_reset),
    PageRoute("POST", f"{_BRANCH}/reset", restores.reset),
    PageRoute("GET", f"{_BRANCH}/restore", restores.show_restore),
    PageRoute("POST", f"{_BRANCH}/restore", restores.restore),
    PageRoute("GET", f"{_BRANCH}/computes/new", computes.show_new),
    PageRoute("POST", f"{_BRANCH}/computes/new", computes.create),
    PageRoute("GET", _COMPUTE, computes.show),
    PageRoute("POST", f"{_COMPUTE}/start", computes.start),
    PageRoute("POST", f"{_COMPUTE}/suspend", computes.suspend),
    PageRoute("POST", f"{_COMPUTE}/restart", computes.restart),
    PageRoute("GET", f"{_COMPUTE}/edit", computes.show_edit),
    PageRoute("POST", f"{_COMPUTE}/edit", computes.edit),
    PageRoute("GET", f"{_COMPUTE}/delete", computes.show_delete),
    PageRoute("POST", f"{_COMPUTE}/delete", computes.delete),
    PageRoute("GET", "/account/keys", keys.show),
    PageRoute("GET", "/account/keys/changes", live.key_changes, is_stream=True),
    PageRoute("GET", "/account/keys/new", keys.show_new),
    PageRoute("POST", "/account/keys/new", keys.create),
    PageRoute("GET", "/account/keys/{key_id}/revoke", keys.confirm_revocation),
    PageRoute("POST", "/account/keys/{key_id}/revoke", keys.revoke),
    PageRoute("GET", "/created-keys/{key_id}", keys.show_created),
    PageRoute("GET", "/organizations", organizations.show),
    PageRoute("GET", "/organizations/new", organizations.show_new),
    PageRoute("POST", "/organizations/new", organizations.create),
    PageRoute("GET", f"{_ORGANIZATION}/leave", organizations.confirm_leaving),
    PageRoute("POST", f"{_ORGANIZATION}/leave", organizations.leave),
    PageRoute("GET", _KEYS, organization_keys.show),
    PageRoute("GET", f"{_KEYS}/changes", live.key_changes, is_stream=True),
    PageRoute("GET", f"{_KEYS}/new", organization_keys.show_new),
    PageRoute("POST", f"{_KEYS}/new", organization_keys.create),
    PageRoute("GET", f"{_KEYS}/{{key_id}}/revoke", organization_keys.confirm_revocation),
    PageRoute("POST", f"{_KEYS}/{{key_id}}/revoke", organization_keys.revoke),
    PageRoute("GET", f"{_ORGANIZATION}/members", members.show),
    PageRoute("POST", f"{_ORGANIZATION}/members", members.invite),
    PageRoute("GET", f"{_ORGANIZATION}/members/changes", live.member_changes, is_stream=True),
    PageRoute("GET", f"{_MEMBER}/role", members.show_role),
    PageRoute("POST", f"{_MEMBER}/role", members.change_role),
    PageRoute("GET", f"{_MEMBER}/remove", members.confirm_removal),
    PageRoute("POST", f"{_MEMBER}/remove", members.remove),
    PageRoute("POST", f"{_INVITATION}/secret", invitations.create_secret),
    PageRoute("POST", f"{_INVITATION}/revoke", invitations.revoke),
    PageRoute("GET", f"{_INVITATION}/accept", invitations.show_acceptance),
    PageRoute("POST", f"{_INVITATION}/accept", invitations.accept),
    PageRoute("GET", "/users", users.show),
    PageRoute("GET", "/users/new", users.show_new),
    PageRoute("POST", "/users/new", users.create),
    PageRoute("GET", "/projects/{project_id}/sql", statements.show),
    PageRoute("POST", "/projects/{project_id}/sql", statements.run),
    PageRoute("GET", "/requests", requests.show),
    PageRoute("GET", "/requests/changes", requests.changes, is_stream=True),
    PageRoute("GET", "/limits", requests.show_limits),
    PageRoute("GET", "/faults", faults.show),
    PageRoute("POST", "/faults/plan", faults.plan),
    PageRoute("POST", "/faults/presets", faults.plan_preset),
    PageRoute("POST", "/faults/clear", faults.clear),
    PageRoute("POST", "/faults/failures/plan", faults.plan_failure),
    PageRoute("POST", "/faults/failures/clear", faults.clear_failure),
)
