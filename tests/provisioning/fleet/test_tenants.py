"""A tenant checks its fields, and describes its computes."""

import pickle
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import UNSET

from neonctl_async.provisioning.fleet import Tenant
from neonctl_async.provisioning.fleet.tenants import EXPECTED
from tests.provisioning.fleet.records import tenant


def test_every_field_has_an_expected_value() -> None:
    assert tuple(EXPECTED) == Tenant.__struct_fields__


def test_tenant_with_all_fields_is_valid() -> None:
    valid = tenant(
        parent="main",
        init_source="schema-only",
        protected=True,
        expires_at=datetime(2027, 1, 1, tzinfo=UTC),
        min_cu=0.25,
        max_cu=2,
        suspend_timeout_seconds=-1,
        database="shop",
        role="owner",
        region="aws-us-east-2",
        pg_version=17,
    )
    [spec] = valid.endpoints
    assert spec.type == "read_write"
    assert (spec.autoscaling_limit_min_cu, spec.autoscaling_limit_max_cu) == (0.25, 2)
    assert spec.suspend_timeout_seconds == -1
    assert len({valid, tenant()}) == 2
    assert str(valid) == "acme/b-1"


def test_tenant_can_be_sent_to_another_process() -> None:
    sent = tenant(parent="main", expires_at=datetime(2027, 1, 1, tzinfo=UTC), max_cu=2)
    assert pickle.loads(pickle.dumps(sent)) == sent


def test_unset_settings_of_a_compute_are_not_sent() -> None:
    [spec] = tenant().endpoints
    assert spec.autoscaling_limit_max_cu is UNSET
    assert tenant(compute=False).endpoints == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"project": ""}, "project is '': expected the id or the name of a project"),
        ({"branch": None}, "branch is None: expected the name of a branch"),
        ({"parent": 7}, "parent is 7: expected the name or the id of a branch"),
        ({"init_source": "data"}, "init_source is 'data': expected parent-data or schema-only"),
        (
            {"expires_at": datetime(2027, 1, 1)},  # noqa: DTZ001 - what the test is about
            f"expires_at is 2027-01-01T00:00:00: expected {EXPECTED['expires_at']}",
        ),
        ({"compute": None}, "compute is None: expected true or false"),
        ({"max_cu": 0.1}, "max_cu is 0.1: expected a number from 0.25 to 1024"),
        ({"max_cu": float("nan")}, "max_cu is nan: expected a number from 0.25 to 1024"),
        ({"min_cu": 2, "max_cu": 1}, "min_cu is 2: expected at most max_cu, 1"),
        (
            {"compute": False, "compute_name": "web"},
            (
                "compute is False: expected True, or no compute_name, min_cu, max_cu, "
                "suspend_timeout_seconds"
            ),
        ),
        (
            {"suspend_timeout_seconds": 604801},
            "suspend_timeout_seconds is 604801: expected a whole number from -1 to 604800",
        ),
        (
            {"pg_version": True},
            "pg_version is True: expected a major version of Postgres, such as 17",
        ),
    ],
)
def test_invalid_field_is_rejected(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        tenant(**fields)
