"""The statuses of errors, with their reasons. Neon publishes most errors only as ``default``."""

from collections.abc import Mapping

ERRORS: Mapping[int, str] = {
    400: "a parameter or a field is invalid",
    401: "the key is missing or unknown",
    404: "the request names an object that does not exist",
}
"""The errors of all operations."""

ERRORS_WITH_BODY: Mapping[int, str] = {415: "the body is not JSON"}
"""Further errors of the operations with a body."""

_ORGANIZATION = "/organizations/{org_id}"
_PROJECT = "/projects/{project_id}"
_BRANCH = f"{_PROJECT}/branches/{{branch_id}}"
_DATABASE = f"{_BRANCH}/databases/{{database_name}}"
_ENDPOINT = f"{_PROJECT}/endpoints/{{endpoint_id}}"
_MEMBER = f"{_ORGANIZATION}/members/{{member_id}}"
_ROLE = f"{_BRANCH}/roles/{{role_name}}"

_DISABLED = "the compute is disabled"
_ENABLED = "the service is enabled already"
_LAST_ADMINISTRATOR = "an organization needs an administrator"
_NAME_TAKEN = "the name is taken"
_NO_NAME = "Postgres cannot have the name, or the branch has 500 such objects"
_NO_LOGIN = "the role has no password"
_NOT_RESTORED = "the branch was not restored, or is finalized already"
_OWN_ROLE = "the caller did not confirm the loss of the own role"
_EXPIRES = "a default or protected branch, or one with children or a Data API, cannot expire"
_PROTECTED = "the branch, or a branch of the project, is protected"
_QUOTA = "the computes of the project ran as long as they may"
_TWO_COMPUTES = "a branch has at most one read_write compute"

ERRORS_OF: Mapping[str, Mapping[int, str]] = {
    f"DELETE {_BRANCH}": {422: "the branch is root, default or protected, or has children"},
    f"DELETE {_ENDPOINT}": {422: "the branch is protected, or anonymized"},
    f"DELETE {_PROJECT}": {422: _PROTECTED},
    f"DELETE {_MEMBER}": {422: _LAST_ADMINISTRATOR},
    f"DELETE {_PROJECT}/members/{{member_id}}/role": {409: _OWN_ROLE},
    f"DELETE {_ROLE}": {422: "the role owns a database"},
    f"GET {_ROLE}/reveal_password": {422: _NO_LOGIN},
    f"PATCH {_BRANCH}": {409: _NAME_TAKEN, 422: _EXPIRES},
    f"PATCH {_DATABASE}": {409: _NAME_TAKEN, 422: _NO_NAME},
    f"PATCH {_ENDPOINT}": {409: _TWO_COMPUTES},
    f"PATCH {_PROJECT}": {422: "logical replication cannot be disabled"},
    f"PATCH {_PROJECT}/snapshots/{{snapshot_id}}": {409: _NAME_TAKEN},
    f"PATCH {_MEMBER}": {422: _LAST_ADMINISTRATOR},
    "POST /projects": {422: _NO_NAME},
    f"POST {_BRANCH}/anonymize": {409: "the branch is not in a state to anonymize"},
    f"POST {_BRANCH}/auth": {409: _ENABLED},
    f"POST {_BRANCH}/auth/domains": {409: "the domain is trusted already"},
    f"POST {_BRANCH}/auth/oauth_providers": {409: "the provider is added already"},
    f"POST {_BRANCH}/auth/users": {409: "a user has the address already"},
    f"POST {_BRANCH}/custom-domains": {409: "the domain is registered already"},
    f"POST {_BRANCH}/data-api/{{database_name}}": {409: _ENABLED, 422: _EXPIRES},
    f"POST {_BRANCH}/set_as_default": {422: _EXPIRES},
    f"POST {_BRANCH}/databases": {409: _NAME_TAKEN, 422: _NO_NAME},
    f"POST {_BRANCH}/finalize_restore": {409: _TWO_COMPUTES, 422: _NOT_RESTORED},
    f"POST {_BRANCH}/recover": {409: _NAME_TAKEN},
    f"POST {_BRANCH}/restore": {
        409: _NAME_TAKEN,
        422: "the branch is protected or anonymized, or the source has no past",
    },
    f"POST {_BRANCH}/roles": {409: _NAME_TAKEN, 422: _NO_NAME},
    f"POST {_BRANCH}/snapshot": {409: _NAME_TAKEN, 422: "only root branches have snapshots"},
    f"POST {_ENDPOINT}/restart": {409: _DISABLED, 412: _QUOTA, 422: "the compute is idle"},
    f"POST {_ENDPOINT}/start": {409: _DISABLED, 412: _QUOTA},
    f"POST {_ORGANIZATION}/invitations": {
        409: "an address has a pending invitation",
        422: "the organization lacks the role",
    },
    f"POST {_PROJECT}/branch_anonymized": {
        409: "the name is taken, or two computes write",
        412: _QUOTA,
        422: f"{_EXPIRES}, or the project has an allow list",
    },
    f"POST {_PROJECT}/branches": {
        409: "the name is taken, or two computes write",
        412: _QUOTA,
        422: _EXPIRES,
    },
    f"POST {_PROJECT}/endpoints": {409: _TWO_COMPUTES, 412: _QUOTA},
    f"POST {_PROJECT}/permissions": {409: "the project is shared with the address already"},
    f"POST {_PROJECT}/snapshots/{{snapshot_id}}/restore": {409: _TWO_COMPUTES},
    f"POST {_PROJECT}/vpc_endpoints/{{vpc_endpoint_id}}": {
        422: "the VPC endpoint is not one of the organization's"
    },
    f"POST {_ROLE}/reset_password": {422: _NO_LOGIN},
    f"PUT {_BRANCH}/backup_schedule": {422: "only root branches have a schedule"},
    f"PUT {_PROJECT}/members/{{member_id}}/role": {409: _OWN_ROLE},
    f"PUT {_PROJECT}/transfer_requests/{{request_id}}": {409: "the request is used or expired"},
}
"""Further errors of single operations."""
