"""The limits of request bodies."""

import pytest

from control_plane.tests.client import Client


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"branch": {"name": ""}}, "branch.name"),
        ({"branch": {"expires_at": "tomorrow"}}, "branch.expires_at"),
        ({"branch": {"parent_lsn": "1A2B3C"}}, "parent_lsn (expected an LSN"),
        ({"branch": {"expires_at": "2025-01-01T00:00:00Z"}}, "expires_at"),
        ({"endpoints": [{"provisioner": "k8s-pod"}]}, "endpoints[0].type"),
        ({"endpoints": [{"type": "write_only"}]}, "endpoints[0].type"),
        ({"endpoints": [{"type": "read_write", "suspend_timeout_seconds": 604801}]}, "suspend"),
        ({"endpoints": [{"type": "read_only"}] * 101}, "endpoints"),
        ({"endpoints": [{"type": "read_write", "provisioner": ""}]}, "provisioner"),
        (["branch"], "body"),
        ({"branch": {"parent_timestamp": "0001-01-01T00:00:00+14:00"}}, "parent_timestamp"),
        ({"branch": {"parent_timestamp": "9999-12-31T23:59:59-14:00"}}, "parent_timestamp"),
        ({"branch": {"expires_at": "0001-01-01T00:00:00+14:00"}}, "expires_at"),
        ({"branch": {"expires_at": "9999-12-31T23:59:59-14:00"}}, "expires_at"),
    ],
)
async def test_error_for_an_invalid_branch_names_the_field(
    api: Client, project_id: str, body: object, field: str
) -> None:
    await api.expect_error(400, field, "POST", f"/projects/{project_id}/branches", body)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"name": ""}, "project.name"),
        ({"name": "x" * 257}, "project.name"),
        ({"branch": {"database_name": "x" * 64}}, "project.branch.database_name"),
        ({"branch": {"role_name": "x" * 64}}, "project.branch.role_name"),
        ({"pg_version": 13}, "project.pg_version"),
        ({"history_retention_seconds": -1}, "project.history_retention_seconds"),
        ({"autoscaling_limit_min_cu": 0.1}, "project.autoscaling_limit_min_cu"),
        ({"autoscaling_limit_min_cu": 2, "autoscaling_limit_max_cu": 1}, "autoscaling_limit_min"),
        ({"autoscaling_limit_max_cu": 1025}, "project.autoscaling_limit_max_cu"),
        ({"autoscaling_limit_min_cu": 1e308}, "project.autoscaling_limit_min_cu"),
        ({"default_endpoint_settings": {"autoscaling_limit_min_cu": 1025}}, "default_endpoint"),
        ({"branch": {"name": 1}}, "project.branch.name"),
        ({"default_endpoint_settings": {"suspend_timeout_seconds": -2}}, "default_endpoint"),
    ],
)
async def test_error_for_an_invalid_project_names_the_field(
    api: Client, spec: object, field: str
) -> None:
    await api.expect_error(400, field, "POST", "/projects", {"project": spec})
    assert await api.project_names() == []
