import msgspec

from neonctl_async import DefaultEndpointSettings, ProjectBranchSpec, ProjectSettings
from neonctl_async.models.projects import ProjectsPage
from neonctl_async.types import (
    AllowedIps,
    MaintenanceWindow,
    Project,
    ProjectOwner,
    ProjectQuota,
)
from tests.models.records import (
    AT_NOON,
    NOON,
    PROJECT,
    decode,
)


def test_project_needs_only_required_fields() -> None:
    [project] = decode(ProjectsPage, {"projects": [PROJECT]}).projects
    assert (project.id, project.name, project.pg_version) == ("p-1", "shop", 17)
    assert (project.locked, project.settings, project.owner, project.org_id) == (None,) * 4


def test_project_decodes_current_fields() -> None:
    more = {
        "settings": {
            "quota": {"active_time_seconds": 0},
            "allowed_ips": {"ips": ["192.0.2.0/24"]},
            "maintenance_window": {"weekdays": [7], "start_time": "01:00", "end_time": "02:00"},
            "brand_new": True,
        },
        "default_endpoint_settings": {"autoscaling_limit_max_cu": 0.5},
        "owner": {"email": "ada@example.com", "branches_limit": -1},
        "consumption_period_start": "0001-01-01T00:00:00Z",
        "compute_last_active_at": NOON,
    }
    project = decode(Project, {**PROJECT, **more})
    assert project.settings == ProjectSettings(
        quota=ProjectQuota(active_time_seconds=0),
        allowed_ips=AllowedIps(ips=["192.0.2.0/24"]),
        maintenance_window=MaintenanceWindow(weekdays=[7], start_time="01:00", end_time="02:00"),
    )
    assert project.default_endpoint_settings == DefaultEndpointSettings(
        autoscaling_limit_max_cu=0.5
    )
    assert project.owner == ProjectOwner(email="ada@example.com", branches_limit=-1)
    assert project.consumption_period_start is not None
    assert project.consumption_period_start.year == 1
    assert project.compute_last_active_at == AT_NOON


def test_page_has_unavailable_projects_and_integrations() -> None:
    content = {
        "projects": [],
        "unavailable_project_ids": ["p-2"],
        "applications": {"p-1": ["vercel"]},
        "integrations": {"p-1": ["brand_new"]},
    }
    page = decode(ProjectsPage, content)
    assert page.unavailable_project_ids == ["p-2"]
    assert page.applications == {"p-1": ["vercel"]}
    assert page.integrations == {"p-1": ["brand_new"]}


def test_unset_fields_are_not_sent() -> None:
    assert msgspec.to_builtins(ProjectSettings()) == {}
    assert msgspec.to_builtins(ProjectBranchSpec(role_name="owner")) == {"role_name": "owner"}
    settings = ProjectSettings(hipaa=False, quota=ProjectQuota(written_data_bytes=0))
    assert msgspec.to_builtins(settings) == {"hipaa": False, "quota": {"written_data_bytes": 0}}
