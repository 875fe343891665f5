"""Fleets: create a list of branches, and continue after a failure or a kill."""

from neonctl_async.provisioning.fleet.errors import FleetError
from neonctl_async.provisioning.fleet.files import (
    read_tenants,
    tenants_from_csv,
    tenants_from_jsonl,
)
from neonctl_async.provisioning.fleet.fleet import Fleet
from neonctl_async.provisioning.fleet.reports import (
    FleetPlan,
    FleetReport,
    FleetUpdate,
    PlannedTenant,
    TenantResult,
)
from neonctl_async.provisioning.fleet.tenants import Tenant

__all__ = [
    "Fleet",
    "FleetError",
    "FleetPlan",
    "FleetReport",
    "FleetUpdate",
    "PlannedTenant",
    "Tenant",
    "TenantResult",
    "read_tenants",
    "tenants_from_csv",
    "tenants_from_jsonl",
]
