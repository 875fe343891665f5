"""The routes of the API: method, path relative to the base URL, and handler."""

from collections.abc import Callable
from difflib import get_close_matches
from typing import Final, NamedTuple

from neonctl_local.api import (
    api_keys,
    branch_changes,
    branches,
    databases,
    endpoints,
    operations,
    project_changes,
    project_settings,
    projects,
    regions,
    roles,
    snapshot_restores,
    snapshots,
    users,
    vpc_endpoints,
)
from neonctl_local.api.billing import consumption, spending_limit
from neonctl_local.api.branch_data import advisors, anonymized, schemas
from neonctl_local.api.branch_data.schemas import SchemaRead
from neonctl_local.api.people import accounts, invitations, organizations
from neonctl_local.api.project_access import jwks, members, permissions, transfers
from neonctl_local.api.request.calls import Call, Response
from neonctl_local.api.services import (
    auth,
    auth_domains,
    auth_providers,
    auth_settings,
    auth_users,
    credentials,
    custom_domains,
    data_api,
)
from neonctl_local.server.serverless import SQL_PATH, WEBSOCKET_PATH
from neonctl_local.storage.transactions import Transaction

Handler = Callable[[Transaction, Call], Response | SchemaRead]


class Route(NamedTuple):
    """A method, a path template, and the function that handles the request."""

    method: str
    path: str
    handler: Handler

    @property
    def pattern(self) -> str:
        """The path as an aiohttp pattern whose parameters also match values that contain braces."""
        return self.path.replace("}", ":[^/]+}")

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


LOCAL_PATH: Final = "/local/v1"
"""The path prefix of requests that are not part of Neon's API."""
LINKS_PATH: Final = f"{LOCAL_PATH}/console_links"
"""The path of a request for a link that signs in to the console."""
FAULTS_PATH: Final = f"{LOCAL_PATH}/faults"
"""The path of the planned faults and failures of a tenant."""

_PROJECT = "/projects/{project_id}"
_OPERATION = f"{_PROJECT}/operations/{{operation_id}}"
_BRANCH = f"{_PROJECT}/branches/{{branch_id}}"
_AUTH = f"{_BRANCH}/auth"
_AUTH_PROVIDER = f"{_AUTH}/oauth_providers/{{oauth_provider_id}}"
_AUTH_USER = f"{_AUTH}/users/{{auth_user_id}}"
_DATA_API = f"{_BRANCH}/data-api/{{database_name}}"
_SNAPSHOT = f"{_PROJECT}/snapshots/{{snapshot_id}}"
_DATABASE = f"{_BRANCH}/databases/{{database_name}}"
_ROLE = f"{_BRANCH}/roles/{{role_name}}"
_CREDENTIAL = f"{_BRANCH}/credentials/{{token_id}}"
_ENDPOINT = f"{_PROJECT}/endpoints/{{endpoint_id}}"
_ORGANIZATION = "/organizations/{org_id}"
_MEMBER = f"{_ORGANIZATION}/members/{{member_id}}"
_SPENDING_LIMIT = f"{_ORGANIZATION}/billing/spending_limit"
_VPC_REGION = f"{_ORGANIZATION}/vpc/region/{{region_id}}/vpc_endpoints"
_VPC_ENDPOINT = f"{_VPC_REGION}/{{vpc_endpoint_id}}"
_PROJECT_ROLE = f"{_PROJECT}/members/{{member_id}}/role"
_RESTRICTION = f"{_PROJECT}/vpc_endpoints/{{vpc_endpoint_id}}"
_TRANSFER = "/organizations/{source_org_id}/projects/transfer"

CREATE_ORGANIZATION_KEY: Final = f"POST {_ORGANIZATION}/api_keys"
"""The only route with a separate rate limit."""

ROUTES: Final[tuple[Route, ...]] = (
    Route("GET", "/users/me", users.me),
    Route("GET", "/users/me/organizations", users.list_organizations),
    Route("POST", "/users/me/projects/transfer", transfers.from_user),
    Route("GET", "/auth", users.auth_details),
    Route("GET", "/api_keys", api_keys.list_personal),
    Route("POST", "/api_keys", api_keys.create_personal),
    Route("DELETE", "/api_keys/{key_id}", api_keys.revoke_personal),
    Route("GET", _ORGANIZATION, organizations.get_organization),
    Route("GET", f"{_ORGANIZATION}/members", organizations.list_members),
    Route("GET", _MEMBER, organizations.get_member),
    Route("PATCH", _MEMBER, organizations.update_member),
    Route("DELETE", _MEMBER, organizations.delete_member),
    Route("GET", f"{_ORGANIZATION}/invitations", invitations.list_organization),
    Route("POST", f"{_ORGANIZATION}/invitations", invitations.create),
    Route("GET", _SPENDING_LIMIT, spending_limit.get),
    Route("PUT", _SPENDING_LIMIT, spending_limit.update),
    Route("DELETE", _SPENDING_LIMIT, spending_limit.delete),
    Route("GET", "/consumption_history/projects", consumption.list_projects_legacy),
    Route("GET", "/consumption_history/v2/projects", consumption.list_projects),
    Route("GET", "/consumption_history/v2/branches", consumption.list_branches),
    Route("GET", f"{_ORGANIZATION}/api_keys", api_keys.list_organization),
    Route("POST", f"{_ORGANIZATION}/api_keys", api_keys.create_organization),
    Route("DELETE", f"{_ORGANIZATION}/api_keys/{{key_id}}", api_keys.revoke_organization),
    Route("POST", _TRANSFER, transfers.from_organization),
    Route("GET", f"{_ORGANIZATION}/vpc/vpc_endpoints", vpc_endpoints.list_organization),
    Route("GET", _VPC_REGION, vpc_endpoints.list_region),
    Route("GET", _VPC_ENDPOINT, vpc_endpoints.get),
    Route("POST", _VPC_ENDPOINT, vpc_endpoints.assign),
    Route("DELETE", _VPC_ENDPOINT, vpc_endpoints.delete),
    Route("GET", "/regions", regions.list_active),
    Route("GET", "/projects", projects.list_page),
    Route("POST", "/projects", projects.create),
    Route("GET", "/projects/shared", projects.list_shared),
    Route("GET", _PROJECT, projects.get),
    Route("PATCH", _PROJECT, project_changes.update),
    Route("DELETE", _PROJECT, project_changes.delete),
    Route("POST", f"{_PROJECT}/recover", project_changes.recover),
    Route("GET", f"{_PROJECT}/permissions", permissions.list_project),
    Route("POST", f"{_PROJECT}/permissions", permissions.grant),
    Route("DELETE", f"{_PROJECT}/permissions/{{permission_id}}", permissions.revoke),
    Route("GET", f"{_PROJECT}/members", members.list_project),
    Route("PUT", _PROJECT_ROLE, members.set_role),
    Route("DELETE", _PROJECT_ROLE, members.remove_role),
    Route("POST", f"{_PROJECT}/transfer_requests", transfers.create_request),
    Route("PUT", f"{_PROJECT}/transfer_requests/{{request_id}}", transfers.accept_request),
    Route("GET", f"{_PROJECT}/jwks", jwks.list_project),
    Route("POST", f"{_PROJECT}/jwks", jwks.add),
    Route("DELETE", f"{_PROJECT}/jwks/{{jwks_id}}", jwks.delete),
    Route("GET", f"{_PROJECT}/vpc_endpoints", vpc_endpoints.list_project),
    Route("POST", _RESTRICTION, vpc_endpoints.restrict),
    Route("DELETE", _RESTRICTION, vpc_endpoints.unrestrict),
    Route("GET", f"{_PROJECT}/available_preload_libraries", project_settings.list_libraries),
    Route("GET", f"{_PROJECT}/advisors", advisors.list_project),
    Route("GET", f"{_PROJECT}/connection_uri", databases.get_uri),
    Route("GET", f"{_PROJECT}/operations", operations.list_page),
    Route("GET", _OPERATION, operations.get),
    Route("GET", f"{_PROJECT}/branches", branches.list_page),
    Route("POST", f"{_PROJECT}/branches", branches.create),
    Route("GET", f"{_PROJECT}/branches/count", branches.count),
    Route("GET", _BRANCH, branches.get),
    Route("PATCH", _BRANCH, branch_changes.update),
    Route("DELETE", _BRANCH, branches.delete),
    Route("POST", f"{_BRANCH}/restore", branch_changes.restore),
    Route("POST", f"{_BRANCH}/set_as_default", branch_changes.set_default),
    # The form that neon-api 0.3.0 sends.
    Route("POST", f"{_BRANCH}/set_as_primary", branch_changes.set_default),
    Route("POST", f"{_BRANCH}/recover", branch_changes.recover),
    Route("POST", f"{_BRANCH}/finalize_restore", snapshot_restores.finalize),
    Route("GET", f"{_BRANCH}/schema", schemas.get),
    Route("GET", f"{_BRANCH}/compare_schema", schemas.compare),
    Route("POST", f"{_PROJECT}/branch_anonymized", anonymized.create),
    Route("GET", f"{_BRANCH}/anonymized_status", anonymized.get_status),
    Route("GET", f"{_BRANCH}/masking_rules", anonymized.get_rules),
    Route("PATCH", f"{_BRANCH}/masking_rules", anonymized.update_rules),
    Route("POST", f"{_BRANCH}/anonymize", anonymized.start),
    Route("GET", _AUTH, auth.get),
    Route("POST", _AUTH, auth.enable),
    Route("DELETE", _AUTH, auth.disable),
    Route("PATCH", f"{_AUTH}/config", auth.update_config),
    Route("GET", f"{_AUTH}/domains", auth_domains.list_branch),
    Route("POST", f"{_AUTH}/domains", auth_domains.add),
    Route("DELETE", f"{_AUTH}/domains", auth_domains.delete),
    Route("GET", f"{_AUTH}/oauth_providers", auth_providers.list_branch),
    Route("POST", f"{_AUTH}/oauth_providers", auth_providers.add),
    Route("PATCH", _AUTH_PROVIDER, auth_providers.update),
    Route("DELETE", _AUTH_PROVIDER, auth_providers.delete),
    Route("POST", f"{_AUTH}/users", auth_users.create),
    Route("DELETE", _AUTH_USER, auth_users.delete),
    Route("PUT", f"{_AUTH_USER}/role", auth_users.set_roles),
    Route("GET", f"{_AUTH}/email_and_password", auth_settings.read("email_and_password")),
    Route("PATCH", f"{_AUTH}/email_and_password", auth_settings.update("email_and_password")),
    Route("GET", f"{_AUTH}/email_provider", auth_settings.read("email_provider")),
    Route("PATCH", f"{_AUTH}/email_provider", auth_settings.update("email_provider")),
    Route("GET", f"{_AUTH}/allow_localhost", auth_settings.read("allow_localhost")),
    Route("PATCH", f"{_AUTH}/allow_localhost", auth_settings.update("allow_localhost")),
    Route("GET", f"{_AUTH}/plugins", auth_settings.get_plugins),
    Route("PATCH", f"{_AUTH}/plugins/organization", auth_settings.update("organization")),
    Route("PATCH", f"{_AUTH}/plugins/magic-link", auth_settings.update("magic_link")),
    Route("GET", f"{_AUTH}/plugins/phone-number", auth_settings.read("phone_number")),
    Route("PATCH", f"{_AUTH}/plugins/phone-number", auth_settings.update("phone_number")),
    Route("GET", f"{_AUTH}/webhooks", auth_settings.read("webhooks")),
    Route("PUT", f"{_AUTH}/webhooks", auth_settings.replace("webhooks")),
    Route("GET", _DATA_API, data_api.get),
    Route("POST", _DATA_API, data_api.create),
    Route("PATCH", _DATA_API, data_api.update),
    Route("DELETE", _DATA_API, data_api.delete),
    Route("GET", f"{_BRANCH}/credentials", credentials.list_branch),
    Route("POST", f"{_BRANCH}/credentials", credentials.create),
    Route("DELETE", _CREDENTIAL, credentials.revoke),
    Route("POST", f"{_CREDENTIAL}/reveal", credentials.reveal),
    Route("POST", f"{_CREDENTIAL}/rotate", credentials.rotate),
    Route("GET", f"{_BRANCH}/custom-domains", custom_domains.list_branch),
    Route("POST", f"{_BRANCH}/custom-domains", custom_domains.register),
    Route("DELETE", f"{_BRANCH}/custom-domains/{{domain}}", custom_domains.delete),
    Route("POST", f"{_BRANCH}/snapshot", snapshots.create),
    Route("GET", f"{_BRANCH}/backup_schedule", snapshots.get_schedule),
    Route("PUT", f"{_BRANCH}/backup_schedule", snapshots.update_schedule),
    Route("GET", f"{_PROJECT}/snapshots", snapshots.list_project),
    Route("PATCH", _SNAPSHOT, snapshots.update),
    Route("DELETE", _SNAPSHOT, snapshots.delete),
    Route("POST", f"{_SNAPSHOT}/restore", snapshot_restores.restore),
    Route("GET", f"{_BRANCH}/endpoints", endpoints.list_branch),
    Route("GET", f"{_BRANCH}/databases", databases.list_branch),
    Route("POST", f"{_BRANCH}/databases", databases.create),
    Route("GET", _DATABASE, databases.get),
    Route("PATCH", _DATABASE, databases.update),
    Route("DELETE", _DATABASE, databases.delete),
    Route("GET", f"{_BRANCH}/roles", roles.list_branch),
    Route("POST", f"{_BRANCH}/roles", roles.create),
    Route("GET", _ROLE, roles.get),
    Route("DELETE", _ROLE, roles.delete),
    Route("GET", f"{_ROLE}/reveal_password", roles.reveal_password),
    # The form that neon-api 0.3.0 sends.
    Route("POST", f"{_ROLE}/reveal_password", roles.reveal_password),
    Route("POST", f"{_ROLE}/reset_password", roles.reset_password),
    Route("GET", f"{_PROJECT}/endpoints", endpoints.list_project),
    Route("POST", f"{_PROJECT}/endpoints", endpoints.create),
    Route("GET", _ENDPOINT, endpoints.get),
    Route("PATCH", _ENDPOINT, endpoints.update),
    Route("DELETE", _ENDPOINT, endpoints.delete),
    Route("POST", f"{_ENDPOINT}/start", endpoints.start),
    Route("POST", f"{_ENDPOINT}/suspend", endpoints.suspend),
    Route("POST", f"{_ENDPOINT}/restart", endpoints.restart),
)

LOCAL_ROUTES: Final[tuple[Route, ...]] = (
    Route("GET", f"{LOCAL_PATH}/users", accounts.list_users),
    Route("POST", f"{LOCAL_PATH}/users", accounts.create_user),
    Route("POST", f"{LOCAL_PATH}/organizations", accounts.create_organization),
    Route("GET", f"{LOCAL_PATH}{_ORGANIZATION}/invitations", accounts.list_invitations),
    Route("POST", f"{LOCAL_PATH}{_ORGANIZATION}/leave", accounts.leave),
    Route("POST", f"{LOCAL_PATH}/invitations/{{invitation_id}}/accept", accounts.accept_invitation),
    Route("POST", f"{LOCAL_PATH}/invitations/{{invitation_id}}/secret", accounts.create_secret),
    Route("DELETE", f"{LOCAL_PATH}/invitations/{{invitation_id}}", accounts.revoke_invitation),
)
"""The routes for what people do in Neon's console. Their paths are absolute."""

ROUTE_NAMES: Final = frozenset(str(route) for route in ROUTES)

FIXED_PATHS: Final = frozenset({"/projects/shared", f"{_PROJECT}/branches/count"})
"""The paths that another route would match as well, with the last part as an id."""


def check(name: str) -> None:
    """Raise ValueError, suggesting the most similar route, if no route has this name.

    The name "*" stands for all routes.
    """
    names = ROUTE_NAMES | {"*", f"POST {SQL_PATH}", f"GET {WEBSOCKET_PATH}"}
    if name not in names:
        nearest = get_close_matches(name, sorted(names), n=1, cutoff=0.0)
        raise ValueError(f"there is no route {name!r}: did you mean {nearest[0]!r}?")
