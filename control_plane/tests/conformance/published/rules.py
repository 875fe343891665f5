"""Rules of the local control plane that the published description does not contain.

Each rule narrows the schema of a parameter or of a field of a body. The conformance run checks both
sides: a request within the rules is accepted, and any other is rejected. A rule that the local
control plane does not follow is therefore a finding.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from msgspec import Struct

JsonSchema: TypeAlias = dict[str, Any]


class Rule(Struct, frozen=True):
    """Keywords that a schema gets in addition, and the reason."""

    schema: JsonSchema
    reason: str


NOW = datetime(2026, 11, 22, tzinfo=UTC)
"""The time of the local control plane. It is fixed, so that all runs send the same requests."""

ANY = Rule({}, "the name of a new object, or of an object that Neon does not know")


def _day(days: int) -> JsonSchema:
    """Return the schema of a time that is some days from the time of the control plane."""
    return {"enum": [(NOW + timedelta(days)).strftime("%Y-%m-%dT00:00:00Z")]}


_EXPIRY = Rule(_day(7), "an expiry is a time in the future")
_KEPT = "the published text limits the time that consumption is kept"
_LSN = Rule({"pattern": "^[0-9A-F]{1,8}/[0-9A-F]{1,8}$"}, "Postgres reads no other text")
_PRINTED = r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]"
_VISIBLE = rf"^{_PRINTED}*[^\s\x00-\x1f\x7f-\x9f]{_PRINTED}*$"
_NO_CONTROLS = "a name is not blank and has no control characters"
_NAME = Rule({"pattern": _VISIBLE, "maxLength": 256}, _NO_CONTROLS)
_TIME = Rule({"format": "date-time"}, "the published text requires this format")

_SPACES = r"\s\x1c-\x1f\x85"
"""The white space of JSON Schema and of Python."""
_SIZE = Rule({"enum": [0.25, 0.5, *range(1, 9)]}, "the sizes of Neon's computes")
_64_BITS = Rule({"minimum": -(2**63), "maximum": 2**63 - 1}, "SQLite has no larger integers")

FIELDS: Mapping[str, Rule] = {
    "autoscaling_limit_max_cu": _SIZE,
    "autoscaling_limit_min_cu": _SIZE,
    "db_max_rows": _64_BITS,
    "expires_at": _EXPIRY,
    "frequency": Rule({"enum": ["daily", "weekly", "monthly"]}, "Neon's guides list these values"),
    "init_source": Rule(
        {"enum": ["parent-data", "schema-only"]}, "the published text lists these values"
    ),
    "jwks_url": Rule(
        {"pattern": rf"^https://[^/{_SPACES}][^{_SPACES}]*$"}, "Neon reads keys over HTTPS"
    ),
    "jwt_cache_max_lifetime": _64_BITS,
    "key_name": Rule({"pattern": _VISIBLE}, _NO_CONTROLS),
    "name": _NAME,
    "parent_lsn": _LSN,
    "port": _64_BITS,
    "preserve_under_name": _NAME,
    "provisioner": Rule(
        {"enum": ["k8s-neonvm", "k8s-pod"]}, "the published text lists these values for computes"
    ),
    "retention_seconds": Rule({"maximum": 35 * 86400}, "Neon's guides name this limit"),
    "source_lsn": _LSN,
    "ttl_seconds": Rule({"minimum": 1, "maximum": 31536000}, "a request lasts a year at most"),
}
"""Rules of the fields of all bodies, by name."""

EXCLUDED: Mapping[str, str] = {
    "masking_value": "not together with masking_function",
    "parent_timestamp": "not together with parent_lsn",
    "source_timestamp": "not together with source_lsn",
}
"""Fields that no body has: the coverage phase would send each with the field it excludes."""

PARAMETERS: Mapping[str, Rule] = {
    "base_lsn": _LSN,
    "cursor": Rule({"enum": [""]}, "the only other cursors are those of an earlier page"),
    "expires_at": _EXPIRY,
    "from": Rule(_day(-3), _KEPT),
    "lsn": _LSN,
    "name": _NAME,
    "slug": Rule(
        {"pattern": "^[a-z]([a-z0-9-]*[a-z0-9])?$", "maxLength": 256},
        "the published text describes these names",
    ),
    "timestamp": _TIME,
    "to": Rule(_day(-1), _KEPT),
}
"""Rules of all query parameters, by name."""

_POSTGRES_NAME = Rule({"pattern": _VISIBLE, "maxLength": 63}, "Postgres has no longer names")
_PROJECT_NAME = Rule({"pattern": _VISIBLE, "maxLength": 64}, "Neon's guides name this limit")
_COMPUTE_NAME = Rule({"pattern": _VISIBLE}, _NO_CONTROLS)

_LISTED = "the published text lists these values"
_DOMAINS = "POST /projects/{project_id}/branches/{branch_id}/custom-domains"
_METRICS = ["compute_unit_seconds", "root_branch_bytes_month", "public_network_transfer_bytes"]
_ROLE = Rule(
    {"enum": ["admin", "member"]},
    "some organizations lack the other roles, according to the published text",
)

OF_OPERATION: Mapping[str, Rule] = {
    "GET /consumption_history/projects: metric": Rule(
        {"enum": ["active_time_seconds", "logical_size_bytes"]}, _LISTED
    ),
    "GET /consumption_history/v2/branches: metric": Rule({"enum": _METRICS}, _LISTED),
    "GET /consumption_history/v2/projects: metric": Rule({"enum": _METRICS}, _LISTED),
    "GET /organizations/{org_id}/vpc/region/{region_id}/vpc_endpoints: region_id": ANY,
    "GET /projects/{project_id}/branches/{branch_id}/schema: format": Rule(
        {"enum": ["sql", "json"]}, "the published text lists these values"
    ),
    "GET /projects/{project_id}/members: limit": Rule(
        {"minimum": 1, "maximum": 500}, "the published text has no limits, unlike other lists"
    ),
    "PATCH /organizations/{org_id}/members/{member_id}: role": _ROLE,
    "POST /organizations/{org_id}/invitations: role": _ROLE,
    "PATCH /projects/{project_id}: name": _PROJECT_NAME,
    "PATCH /projects/{project_id}/branches/{branch_id}/databases/{database_name}: name": (
        _POSTGRES_NAME
    ),
    "PATCH /projects/{project_id}/branches/{branch_id}/masking_rules: database_name": ANY,
    "PATCH /projects/{project_id}/endpoints/{endpoint_id}: name": _COMPUTE_NAME,
    (
        "POST /organizations/{org_id}/vpc/region/{region_id}/vpc_endpoints/{vpc_endpoint_id}"
        ": vpc_endpoint_id"
    ): ANY,
    "POST /projects: database_name": _POSTGRES_NAME,
    "POST /projects: project.name": _PROJECT_NAME,
    "POST /projects: role_name": _POSTGRES_NAME,
    "POST /projects/{project_id}/branch_anonymized: database_name": ANY,
    f"{_DOMAINS}: domain": Rule(
        {"pattern": r"^[a-z]{1,20}\.example\.com$"}, "Neon rejects its own and internal domains"
    ),
    f"{_DOMAINS}: entity_id": Rule({"pattern": "^[a-z]{1,20}$"}, "a slug is a DNS label"),
    f"{_DOMAINS}: entity_type": Rule({"enum": ["function"]}, _LISTED),
    "POST /projects/{project_id}/branches/{branch_id}/auth/users: name": ANY,
    "POST /projects/{project_id}/branches/{branch_id}/databases: name": _POSTGRES_NAME,
    "POST /projects/{project_id}/branches/{branch_id}/roles: name": _POSTGRES_NAME,
    "POST /projects/{project_id}/endpoints: name": _COMPUTE_NAME,
    "POST /projects/{project_id}/jwks: role_name": ANY,
}
"""Rules of single operations. They replace those above. A field can have the name of its object."""

CLOSED: Mapping[str, str] = dict.fromkeys(
    ("POST /api_keys", "POST /organizations/{org_id}/api_keys"),
    "with a misspelt project_id, a key would have access to all projects",
)
"""The operations whose bodies have no other fields than the published ones."""
