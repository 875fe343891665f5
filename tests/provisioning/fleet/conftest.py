"""Tenants in two projects, and a fault for each kind of request."""

import pytest

from neonctl_async.provisioning.fleet import Tenant
from tests.provisioning.fleet.records import tenant


@pytest.fixture
def tenants() -> list[Tenant]:
    """Six tenants in two projects that do not exist."""
    return [
        tenant(f"b-{number}", f"customer-{number % 2}", region="aws-us-east-2")
        for number in range(6)
    ]
