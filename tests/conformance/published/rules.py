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


ANY = Rule({}, "the name of a new object, or of an object that Neon does not know")
_ONE_WEEK = (datetime.now(UTC) + timedelta(days=7)).strftime("%Y-%m-%dT00:00:00Z")
_EXPIRY = Rule({"enum": [_ONE_WEEK]}, "an expiry is a time in the future")
_LSN = Rule({"pattern": "^[0-9A-F]{1,8}/[0-9A-F]{1,8}$"}, "Postgres reads no other text")
_NAME = Rule({"minLength": 1, "maxLength": 256}, "a name is not empty")
_TIME = Rule({"format": "date-time"}, "the published text requires this format")

FIELDS: Mapping[str, Rule] = {
    "expires_at": _EXPIRY,
    "frequency": Rule(
        {"enum": ["hourly", "daily", "weekly", "monthly", "yearly"]},
        "the published text lists these values",
    ),
    "jwks_url": Rule({"pattern": "^https://[a-z]{1,20}\\.example$"}, "Neon reads keys over HTTPS"),
    "key_name": Rule({"minLength": 1}, "a name is not empty"),
    "name": _NAME,
    "parent_lsn": _LSN,
    "preserve_under_name": _NAME,
    "provisioner": Rule(
        {"enum": ["k8s-neonvm", "k8s-pod"]}, "the published text lists these values for computes"
    ),
    "source_lsn": _LSN,
    "ttl_seconds": Rule({"minimum": 1, "maximum": 31536000}, "a request lasts a year at most"),
}
"""Rules of the fields of all bodies, by name."""

PARAMETERS: Mapping[str, Rule] = {
    "base_lsn": _LSN,
    "cursor": Rule({"enum": [""]}, "the only other cursors are those of an earlier page"),
    "expires_at": _EXPIRY,
    "lsn": _LSN,
    "timestamp": _TIME,
}
"""Rules of all query parameters, by name."""

_POSTGRES_NAME = Rule({"minLength": 1, "maxLength": 63}, "Postgres has no longer names")
_COMPUTE_NAME = Rule({"minLength": 1, "maxLength": 64}, "the published limit of new computes")

OF_OPERATION: Mapping[str, Rule] = {
    "GET /organizations/{org_id}/vpc/region/{region_id}/vpc_endpoints: region_id": ANY,
    "GET /projects/{project_id}/branches/{branch_id}/schema: format": Rule(
        {"enum": ["sql", "json"]}, "the published text lists these values"
    ),
    "PATCH /organizations/{org_id}/members/{member_id}: role": Rule(
        {"enum": ["admin", "member"]},
        "the published text says that organizations may lack the other roles",
    ),
    "PATCH /projects/{project_id}/branches/{branch_id}/databases/{database_name}: name": (
        _POSTGRES_NAME
    ),
    "PATCH /projects/{project_id}/branches/{branch_id}/masking_rules: database_name": ANY,
    "PATCH /projects/{project_id}/endpoints/{endpoint_id}: name": _COMPUTE_NAME,
    (
        "POST /organizations/{org_id}/vpc/region/{region_id}/vpc_endpoints/{vpc_endpoint_id}"
        ": vpc_endpoint_id"
    ): ANY,
    "POST /projects: database_name": ANY,
    "POST /projects: role_name": ANY,
    "POST /projects/{project_id}/branch_anonymized: database_name": ANY,
    "POST /projects/{project_id}/branches/{branch_id}/databases: name": _POSTGRES_NAME,
    "POST /projects/{project_id}/branches/{branch_id}/roles: name": _POSTGRES_NAME,
    "POST /projects/{project_id}/endpoints: name": _COMPUTE_NAME,
    "POST /projects/{project_id}/jwks: role_name": ANY,
}
"""Rules of single operations. They replace those above."""
