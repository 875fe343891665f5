"""The methods of ``neon.branches`` for schemas and anonymized data."""

from datetime import UTC, datetime
from typing import Any

import pytest

from neonctl_async import EndpointSpec
from neonctl_async.types import (
    AnonymizedBranchStatus,
    BranchCreated,
    BranchSchema,
    BranchSchemaComparison,
    MaskingRule,
)
from tests.models.records import (
    ANONYMIZATION_STATUS,
    BRANCH,
    MASKING_RULE,
    OPERATION,
    decode,
)
from tests.resources.wire import Call, Response, record

PATH = "/projects/p-1/branches/br-1"
ANONYMIZED = "/projects/p-1/branch_anonymized"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SPEC: dict[str, Any] = {
    "name": "masked",
    "parent_id": "br-0",
    "parent_lsn": "0/1",
    "protected": True,
    "archived": False,
    "init_source": "parent-data",
}
BASE: dict[str, Any] = {
    "db_name": "neondb",
    "lsn": "0/1",
    "base_branch_id": "br-0",
    "base_lsn": "0/2",
}
RULE = decode(MaskingRule, MASKING_RULE)
COMPARISON = record(BranchSchemaComparison, {"diff": "--- a\n+++ b\n"})
CREATED = record(BranchCreated, {"branch": BRANCH, "operations": [OPERATION]})
RULES = Response({"masking_rules": [MASKING_RULE]}, [RULE])
STATUS = record(AnonymizedBranchStatus, ANONYMIZATION_STATUS)

CALLS = [
    Call(
        lambda neon: neon.branches.schema("p-1", "br-1", db_name="neondb"),
        f"GET {PATH}/schema",
        record(BranchSchema, {"sql": "CREATE TABLE users ();"}),
        query={"db_name": "neondb"},
    ),
    Call(
        lambda neon: neon.branches.schema(
            "p-1", "br-1", db_name="neondb", lsn="0/1", timestamp=NOON, format="json"
        ),
        f"GET {PATH}/schema",
        record(BranchSchema, {"json": {"tables": []}}),
        query={
            "db_name": "neondb",
            "lsn": "0/1",
            "timestamp": "2026-01-01T12:00:00+00:00",
            "format": "json",
        },
    ),
    Call(
        lambda neon: neon.branches.compare_schema("p-1", "br-1", db_name="neondb"),
        f"GET {PATH}/compare_schema",
        COMPARISON,
        query={"db_name": "neondb"},
    ),
    Call(
        lambda neon: neon.branches.compare_schema(
            "p-1",
            "br-1",
            **BASE,
            timestamp=NOON,
            base_timestamp=NOON.replace(hour=0),
        ),
        f"GET {PATH}/compare_schema",
        COMPARISON,
        query={
            **BASE,
            "timestamp": "2026-01-01T12:00:00+00:00",
            "base_timestamp": "2026-01-01T00:00:00+00:00",
        },
    ),
    Call(
        lambda neon: neon.branches.create_anonymized("p-1"), f"POST {ANONYMIZED}", CREATED, body={}
    ),
    Call(
        lambda neon: neon.branches.create_anonymized("p-1", name="masked"),
        f"POST {ANONYMIZED}",
        CREATED,
        body={"branch_create": {"branch": {"name": "masked"}}},
    ),
    Call(
        lambda neon: neon.branches.create_anonymized(
            "p-1",
            **SPEC,
            parent_timestamp=NOON,
            expires_at=NOON,
            endpoints=[EndpointSpec(type="read_write")],
            annotation_value={"team": "shop"},
            masking_rules=(RULE,),
            start_anonymization=False,
        ),
        f"POST {ANONYMIZED}",
        CREATED,
        body={
            "branch_create": {
                "branch": SPEC
                | {
                    "parent_timestamp": "2026-01-01T12:00:00Z",
                    "expires_at": "2026-01-01T12:00:00Z",
                },
                "endpoints": [{"type": "read_write"}],
            },
            "annotation_value": {"team": "shop"},
            "masking_rules": [MASKING_RULE],
            "start_anonymization": False,
        },
    ),
    Call(
        lambda neon: neon.branches.list_masking_rules("p-1", "br-1"),
        f"GET {PATH}/masking_rules",
        RULES,
    ),
    Call(
        lambda neon: neon.branches.update_masking_rules("p-1", "br-1", masking_rules=(RULE,)),
        f"PATCH {PATH}/masking_rules",
        RULES,
        body={"masking_rules": [MASKING_RULE]},
    ),
    Call(
        lambda neon: neon.branches.anonymized_status("p-1", "br-1"),
        f"GET {PATH}/anonymized_status",
        STATUS,
    ),
    Call(lambda neon: neon.branches.anonymize("p-1", "br-1"), f"POST {PATH}/anonymize", STATUS),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()
