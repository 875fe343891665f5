"""Records of projects, branches and computes for the pure parts of a fleet."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from neonctl_async.provisioning.fleet import Tenant
from neonctl_async.types import Branch, Endpoint, Project

NOW = datetime(2027, 1, 1, tzinfo=UTC)
PROJECT_ID = "late-frost-12345678"


def tenant(branch: str = "b-1", project: str = "acme", **fields: Any) -> Tenant:
    return Tenant(project=project, branch=branch, **fields)


def project(id: str = PROJECT_ID, name: str = "acme", **fields: Any) -> Project:
    record = {
        "id": id,
        "name": name,
        "platform_id": "aws",
        "region_id": "aws-us-east-2",
        "provisioner": "k8s-neonvm",
        "pg_version": 17,
        "proxy_host": "us-east-2.aws.neon.invalid",
        "cpu_used_sec": 0,
        "branch_logical_size_limit": 0,
        "created_at": NOW,
        "updated_at": NOW,
    }
    return msgspec.convert(record | fields, Project)


def branch(name: str = "b-1", **fields: Any) -> Branch:
    record: dict[str, Any] = {
        "id": f"br-{name}",
        "project_id": PROJECT_ID,
        "name": name,
        "parent_id": "br-main",
        "current_state": "ready",
        "created_at": NOW,
        "updated_at": NOW,
    }
    return msgspec.convert(record | fields, Branch)


MAIN = branch("main", parent_id=None, default=True)


def compute(branch: str = "b-1", **fields: Any) -> Endpoint:
    record: dict[str, Any] = {
        "id": f"ep-{branch}",
        "project_id": PROJECT_ID,
        "branch_id": f"br-{branch}",
        "host": f"ep-{branch}.neon.invalid",
        "type": "read_write",
        "current_state": "idle",
        "started_at": NOW,
        "created_at": NOW,
        "updated_at": NOW,
    }
    return msgspec.convert(record | fields, Endpoint)
