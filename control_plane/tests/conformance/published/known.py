"""Deviations from the published description, with their reasons."""

import re

from msgspec import Struct

from neonctl_local.server.routes import ROUTES
from tests.contract.known import EXTRA_LOCAL_FIELDS


class Deviation(Struct, frozen=True):
    """Findings that are right, and the reason.

    ``check`` is the name of the finding, ``text`` a pattern in it. Unless ``random``, every
    coverage phase has such a finding: otherwise the deviation is not needed any more.
    """

    check: str
    text: str
    reason: str
    operations: tuple[str, ...]
    random: bool = False

    def covers(self, operation: str, check: str, text: str) -> bool:
        """Return whether a finding is one of these."""
        return (
            operation in self.operations
            and check == self.check
            and re.search(self.text, text) is not None
        )


_BRANCH = "/projects/{project_id}/branches/{branch_id}"
_REVEAL_PASSWORD = f"GET {_BRANCH}/roles/{{role_name}}/reveal_password"

_PROJECT_RESPONSES = (
    "DELETE /projects/{project_id}",
    "GET /projects/{project_id}",
    "PATCH /projects/{project_id}",
    "POST /projects",
    "POST /projects/{project_id}/recover",
)

_OF_SERVICES = tuple(
    str(route)
    for route in ROUTES
    if route.path.startswith((f"{_BRANCH}/auth", f"{_BRANCH}/data-api"))
)

DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        "RejectedPositiveData",
        r"autoscaling_limit_min_cu: \S+ is more than autoscaling_limit_max_cu",
        "the two limits of a compute depend on each other",
        (
            "PATCH /projects/{project_id}",
            "PATCH /projects/{project_id}/endpoints/{endpoint_id}",
            "POST /projects",
            "POST /projects/{project_id}/branch_anonymized",
            "POST /projects/{project_id}/branches",
            "POST /projects/{project_id}/endpoints",
        ),
    ),
    Deviation(
        "AcceptedNegativeData",
        "positive test case",
        "schemathesis took an id of an earlier response for the part that was invalid",
        (
            "PATCH /projects/{project_id}/endpoints/{endpoint_id}",
            "POST /projects/{project_id}/branch_anonymized",
            "POST /projects/{project_id}/branches",
            f"POST {_BRANCH}/restore",
            "POST /projects/{project_id}/endpoints",
            "POST /projects/{project_id}/snapshots/{snapshot_id}/restore",
        ),
        random=True,
    ),
    Deviation(
        "RejectedPositiveData",
        "already has a read_write endpoint",
        "a branch has at most one read_write compute",
        (
            "POST /projects/{project_id}/branch_anonymized",
            "POST /projects/{project_id}/branches",
            "POST /projects/{project_id}/endpoints",
        ),
        random=True,
    ),
    Deviation(
        "RejectedPositiveData",
        "base_branch_id: query parameter required",
        "a root branch has no parent to compare with",
        (f"GET {_BRANCH}/compare_schema",),
        random=True,
    ),
    Deviation(
        "schema",
        r"operations\.\*\.action: \"delete_tenant\"",
        "Neon's documentation lists this action",
        ("GET /projects/{project_id}/operations",),
        random=True,
    ),
    Deviation(
        "RejectedPositiveData",
        "database_name: query parameter required",
        "the published text requires the name for branches with more than one database",
        ("GET /projects/{project_id}/advisors",),
        random=True,
    ),
    Deviation(
        "RejectedPositiveData",
        "allowed_ips.ips: .* is invalid",
        "the published text of the list calls them addresses",
        ("PATCH /projects/{project_id}", "POST /projects"),
        random=True,
    ),
    Deviation(
        "RejectedPositiveData",
        "preload_libraries.enabled_libraries: .* is not available",
        "another endpoint lists the available libraries",
        (
            "PATCH /projects/{project_id}",
            "PATCH /projects/{project_id}/endpoints/{endpoint_id}",
            "POST /projects",
            "POST /projects/{project_id}/branch_anonymized",
            "POST /projects/{project_id}/branches",
            "POST /projects/{project_id}/endpoints",
        ),
        random=True,
    ),
    Deviation(
        "RejectedPositiveData",
        "pg_settings: ",
        "the published text of the settings calls them those of Postgres",
        (
            "PATCH /projects/{project_id}",
            "PATCH /projects/{project_id}/endpoints/{endpoint_id}",
            "POST /projects",
            "POST /projects/{project_id}/branch_anonymized",
            "POST /projects/{project_id}/branches",
            "POST /projects/{project_id}/endpoints",
        ),
        random=True,
    ),
    Deviation(
        "RejectedPositiveData",
        "logical replication cannot be disabled",
        "the published text of the setting says so",
        ("PATCH /projects/{project_id}",),
        random=True,
    ),
    Deviation(
        "EnsureResourceAvailability",
        "anonymized branch .* not found",
        "the created branch is not anonymized",
        (
            f"GET {_BRANCH}/anonymized_status",
            f"GET {_BRANCH}/masking_rules",
            f"PATCH {_BRANCH}/masking_rules",
            f"POST {_BRANCH}/anonymize",
        ),
        random=True,
    ),
    Deviation(
        "EnsureResourceAvailability",
        "is not enabled",
        "the service of the created branch is not enabled",
        _OF_SERVICES,
        random=True,
    ),
    Deviation(
        "RejectedPositiveData",
        "is already added|has no shared application",
        "the branch has the provider, or the request lacks the credentials of the provider",
        (f"POST {_BRANCH}/auth/oauth_providers",),
        random=True,
    ),
    Deviation(
        "RejectedPositiveData",
        "jwks_url: field required, because auth_provider is 'external'",
        "the published text of the provider requires the URL",
        (f"POST {_BRANCH}/data-api/{{database_name}}",),
        random=True,
    ),
    Deviation(
        "EnsureResourceAvailability",
        "organization .* not found",
        "the organization of the request is random",
        ("PUT /projects/{project_id}/transfer_requests/{request_id}",),
        random=True,
    ),
    Deviation(
        "RejectedPositiveData",
        "database_name: branch .* has no database",
        "Neon Auth keeps its tables in a database of the branch",
        (f"POST {_BRANCH}/auth",),
        random=True,
    ),
    Deviation(
        "RejectedPositiveData",
        "branch_id: branch .* has no endpoint",
        "only branches with a compute have connection URIs",
        ("GET /projects/{project_id}/connection_uri",),
        random=True,
    ),
    Deviation(
        "RejectedPositiveData",
        "already has a pending invitation|the request invites .* twice",
        "the random list contains an address twice",
        ("POST /organizations/{org_id}/invitations",),
        random=True,
    ),
    Deviation(
        "AcceptedNegativeData",
        "project_ids=&",
        "an empty list of projects means all projects",
        ("GET /consumption_history/projects", "GET /consumption_history/v2/projects"),
        random=True,
    ),
    Deviation(
        "AcceptedNegativeData",
        "DELETE /api/v2/api_keys/1 ",
        "the random id is that of another key",
        ("DELETE /api_keys/{key_id}",),
        random=True,
    ),
    Deviation(
        "RejectedPositiveData",
        "region_id: there is no region",
        "the published text of the field names no region",
        ("POST /organizations/{org_id}/vpc/region/{region_id}/vpc_endpoints/{vpc_endpoint_id}",),
        random=True,
    ),
    Deviation(
        "RejectedPositiveData",
        "expected `int` (>=|<=) -?9223372036854775",
        "integers have 64 bits",
        ("PATCH /projects/{project_id}", "POST /projects"),
        random=True,
    ),
    Deviation(
        "UseAfterFree",
        "got `HTTP 200 OK`",
        "the operations of a deleted project can be read (specification, section 3.2)",
        (
            "GET /projects/{project_id}/operations",
            "GET /projects/{project_id}/operations/{operation_id}",
        ),
        random=True,
    ),
    Deviation(
        "UseAfterFree",
        r"(?s)got `HTTP 200 OK`.*deleted with `DELETE [^ ]*/auth/domains`",
        "the request deletes the domains in its body, and the list remains",
        (f"GET {_BRANCH}/auth/domains", "GET /projects/{project_id}/auth/domains"),
        random=True,
    ),
    Deviation(
        "EnsureResourceAvailability",
        "recoverable branch .* not found",
        "the created branch is not deleted",
        (f"POST {_BRANCH}/recover",),
        random=True,
    ),
    Deviation(
        "RejectedPositiveData",
        "lsn: not together with (base_)?timestamp",
        "the published text forbids both together",
        (f"GET {_BRANCH}/compare_schema", f"GET {_BRANCH}/schema", f"POST {_BRANCH}/snapshot"),
    ),
    Deviation(
        "RejectedPositiveData",
        "cannot have an expires_at",
        "Neon's guides name the branches that cannot expire",
        (
            "POST /projects/{project_id}/branch_anonymized",
            "POST /projects/{project_id}/branches",
            f"PATCH {_BRANCH}",
        ),
        random=True,
    ),
    Deviation(
        "RejectedPositiveData",
        "schedule needs a value from",
        "the fields of a schedule depend on its frequency, according to Neon's guides",
        (f"PUT {_BRANCH}/backup_schedule",),
    ),
    Deviation(
        "RejectedPositiveData",
        "timestamp: .* is not within the restore window",
        "the published text requires a time within the restore window",
        (f"POST {_BRANCH}/snapshot",),
    ),
    Deviation(
        "schema",
        '"locked" is not published',
        EXTRA_LOCAL_FIELDS[".locked is not published"],
        ("GET /projects", *_PROJECT_RESPONSES),
    ),
    Deviation(
        "schema",
        '"active_time" is not published',
        EXTRA_LOCAL_FIELDS[".active_time is not published"],
        _PROJECT_RESPONSES,
    ),
    Deviation(
        "schema",
        '"operations" is not published',
        EXTRA_LOCAL_FIELDS["$.operations is not published"],
        ("DELETE /projects/{project_id}", "POST /projects/{project_id}/recover"),
    ),
    Deviation(
        "UnsupportedMethodResponse",
        "Unsupported method POST returned 200",
        "neon-api 0.3.0 sends POST",
        (_REVEAL_PASSWORD,),
    ),
    Deviation(
        "AllowHeaderMismatch",
        "Undocumented methods advertised: POST ",
        "neon-api 0.3.0 sends POST",
        (_REVEAL_PASSWORD,),
    ),
    Deviation(
        "status",
        "200 is neither published nor in statuses.py\n    POST ",
        "neon-api 0.3.0 sends POST",
        (_REVEAL_PASSWORD,),
    ),
)
