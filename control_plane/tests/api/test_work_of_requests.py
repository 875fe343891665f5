"""The work that requests start on real databases, and what the API refuses with them."""

from typing import Any

import pytest

from control_plane.tests.driven import DrivenControlPlane, DrivenProject
from neonctl_local.clock import SECOND
from neonctl_local.engine import databases, operations
from neonctl_local.engine.lifecycle import Failure
from neonctl_local.engine.work import (
    ConfigureBranch,
    CopyCluster,
    CreateCluster,
    DeleteClusters,
    ReplaceCluster,
    StartCompute,
    StopClusters,
    SuspendCompute,
)
from neonctl_local.storage.tables import Endpoint

AT = "2026-01-01T00:00:01Z"
AT_INSTANT = 1_767_225_601 * SECOND
LSN = "0/1A2B3C8"


def test_new_project_creates_a_cluster_and_starts_its_compute() -> None:
    with DrivenControlPlane() as plane:
        created = plane.request("POST", "/projects", {"project": {"pg_version": 16}})
        branch, endpoint = created["branch"]["id"], created["endpoints"][0]["id"]
        assert [operation["action"] for operation in created["operations"]] == [
            *("create_timeline", "start_compute")
        ]
        assert plane.work_off() == [CreateCluster(branch, 16), StartCompute(branch, endpoint)]


@pytest.mark.parametrize(
    ("spec", "at", "lsn", "schema_only"),
    [
        ({}, None, None, False),
        ({"parent_timestamp": AT}, AT_INSTANT, None, False),
        ({"parent_lsn": LSN}, None, LSN, False),
        ({"init_source": "parent-data"}, None, None, False),
        ({"init_source": "schema-only"}, None, None, True),
    ],
)
def test_new_branch_copies_its_parent(
    spec: dict[str, Any],  # Any: parts of a request body
    at: int | None,
    lsn: str | None,
    schema_only: bool,
) -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        created = project.branch(compute=True, **spec)
        branch, endpoint = created["branch"]["id"], created["endpoints"][0]["id"]
        copy = CopyCluster(branch, project.main, at=at, lsn=lsn, schema_only=schema_only)
        assert plane.work_off() == [copy, StartCompute(branch, endpoint)]


def test_operation_that_is_planned_to_fail_has_no_work() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        plane.run(operations.fail_next, "create_branch", Failure(), 1)
        project.branch()
        assert plane.work_off() == []
        assert plane.operations(project.id)[-1]["status"] == "failed"


def test_snapshot_is_a_copy_and_a_restore_copies_it() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        path = f"{project.main_path}/snapshot"
        snapshot = plane.request("POST", path, timestamp=AT)["snapshot"]["id"]
        assert plane.work_off() == [CopyCluster(snapshot, project.main, at=AT_INSTANT)]
        restored = plane.request("POST", f"{project.path}/snapshots/{snapshot}/restore")
        assert plane.work_off() == [CopyCluster(restored["branch"]["id"], snapshot)]
        plane.request("DELETE", f"{project.path}/snapshots/{snapshot}")
        assert plane.work_off() == [DeleteClusters([snapshot])]


def test_expired_snapshot_is_deleted() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        path = f"{project.main_path}/snapshot"
        snapshot = plane.request("POST", path, expires_at="2026-01-01T00:01:00Z")["snapshot"]["id"]
        plane.work_off()
        plane.clock.advance(60)
        project.state()
        assert plane.work_off() == [DeleteClusters([snapshot])]


def test_finalized_restore_moves_the_running_compute() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        snapshot = plane.request("POST", f"{project.main_path}/snapshot")["snapshot"]["id"]
        plane.work_off()
        path = f"{project.path}/snapshots/{snapshot}/restore"
        restored = plane.request("POST", path, {"finalize_restore": True})["branch"]["id"]
        assert plane.work_off() == [
            CopyCluster(restored, snapshot),
            SuspendCompute(project.main, project.endpoint),
            StartCompute(restored, project.endpoint),
        ]
        assert plane.rows(Endpoint)[0].running_on == restored


def test_restore_cannot_be_finalized_before_its_copy_is_done() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        snapshot = plane.request("POST", f"{project.main_path}/snapshot")["snapshot"]["id"]
        plane.work_off()
        restored = plane.request("POST", f"{project.path}/snapshots/{snapshot}/restore")
        path = f"{project.path}/branches/{restored['branch']['id']}/finalize_restore"
        plane.clock.advance(60)
        assert plane.refused("POST", path).status == 409
        plane.work_off()
        plane.request("POST", path)


def test_restore_replaces_the_cluster_between_suspend_and_start() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        source = project.branch(init_source="schema-only")["branch"]["id"]
        plane.work_off()
        point = {"source_branch_id": source, "source_lsn": LSN}
        body = point | {"preserve_under_name": "main before"}
        plane.request("POST", f"{project.main_path}/restore", body)
        page = plane.request("GET", f"{project.path}/branches", search="main before")
        preserved = page["branches"][0]["id"]
        assert plane.work_off() == [
            SuspendCompute(project.main, project.endpoint),
            ReplaceCluster(project.main, source, lsn=LSN, preserved_id=preserved),
            StartCompute(project.main, project.endpoint),
        ]


def test_reset_from_parent_replaces_the_cluster() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        child = project.branch()["branch"]["id"]
        plane.work_off()
        body = {"source_branch_id": project.main}
        plane.request("POST", f"{project.path}/branches/{child}/restore", body)
        assert plane.work_off() == [ReplaceCluster(child, project.main)]


def test_computes_are_started_suspended_and_configured() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        start = StartCompute(project.main, project.endpoint)
        suspend = SuspendCompute(project.main, project.endpoint)
        configure = ConfigureBranch(project.main)
        plane.request("POST", f"{project.endpoint_path}/suspend")
        assert plane.work_off() == [suspend]
        plane.request("POST", f"{project.endpoint_path}/start")
        assert plane.work_off() == [start]
        plane.request("POST", f"{project.endpoint_path}/restart")
        assert plane.work_off() == [suspend, start]
        plane.request("PATCH", project.endpoint_path, {"endpoint": {"name": "x"}})
        assert plane.work_off() == [configure]
        plane.request("PATCH", project.path, {"project": {"settings": {}}})
        assert plane.work_off() == [configure]
        plane.request("DELETE", project.endpoint_path)
        assert plane.work_off() == [suspend]


def test_running_compute_moves_to_another_branch() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        child = project.branch()["branch"]["id"]
        plane.work_off()
        changed = plane.request("PATCH", project.endpoint_path, {"endpoint": {"branch_id": child}})
        assert changed["endpoint"]["branch_id"] == child
        assert plane.work_off() == [
            SuspendCompute(project.main, project.endpoint),
            StartCompute(child, project.endpoint),
            ConfigureBranch(child),
        ]
        route = plane.run(databases.route, project.endpoint)
        assert route is not None
        assert (route.branch_id, route.state) == (child, "active")


def test_idle_compute_moves_without_a_start() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        child = project.branch()["branch"]["id"]
        plane.request("POST", f"{project.endpoint_path}/suspend")
        plane.work_off()
        plane.request("PATCH", project.endpoint_path, {"endpoint": {"branch_id": child}})
        assert plane.work_off() == [ConfigureBranch(child)]


def test_roles_and_databases_are_configured() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        role = f"{project.main_path}/roles/reader"
        for method, path, body in (
            ("POST", f"{project.main_path}/roles", {"role": {"name": "reader"}}),
            ("POST", f"{role}/reset_password", None),
            ("DELETE", role, None),
        ):
            plane.request(method, path, body)
            assert plane.work_off() == [ConfigureBranch(project.main)]
        plane.request("POST", f"{project.endpoint_path}/suspend")
        plane.work_off()
        plane.request("DELETE", f"{project.main_path}/databases/neondb")
        start = StartCompute(project.main, project.endpoint)
        assert plane.work_off() == [start, ConfigureBranch(project.main)]


def test_branch_without_compute_is_configured() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        child = project.branch()["branch"]["id"]
        plane.work_off()
        path = f"{project.path}/branches/{child}/roles"
        plane.request("POST", path, {"role": {"name": "reader"}})
        assert plane.work_off() == [ConfigureBranch(child)]


def test_deleted_branch_stops_and_a_permanent_deletion_deletes_the_cluster() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        for query, deletion in (({}, []), ({"hard_delete": "true"}, [DeleteClusters])):
            created = project.branch(compute=True)
            branch, endpoint = created["branch"]["id"], created["endpoints"][0]["id"]
            plane.work_off()
            plane.request("DELETE", f"{project.path}/branches/{branch}", **query)
            suspend = SuspendCompute(branch, endpoint)
            assert plane.work_off() == [suspend, *(kind([branch]) for kind in deletion)]


def test_recovered_branch_has_its_cluster_and_an_idle_compute() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        created = project.branch(compute=True)
        branch, endpoint = created["branch"]["id"], created["endpoints"][0]["id"]
        plane.work_off()
        plane.request("DELETE", f"{project.path}/branches/{branch}")
        plane.work_off()
        recovered = plane.request("POST", f"{project.path}/branches/{branch}/recover")
        assert recovered["endpoints"][0]["current_state"] == "idle"
        plane.request("POST", f"{project.path}/endpoints/{endpoint}/start")
        assert plane.work_off() == [StartCompute(branch, endpoint)]


def test_expired_branch_stops_its_compute() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        created = project.branch(compute=True, expires_at="2026-01-01T00:01:00Z")
        branch, endpoint = created["branch"]["id"], created["endpoints"][0]["id"]
        plane.work_off()
        plane.clock.advance(60)
        project.state()
        assert plane.work_off() == [SuspendCompute(branch, endpoint)]


def test_deleted_project_stops_its_servers_and_can_be_recovered() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        created = project.branch(compute=True)
        branch, endpoint = created["branch"]["id"], created["endpoints"][0]["id"]
        deleted = plane.request("DELETE", project.path)
        assert deleted["operations"][0]["action"] == "delete_tenant"
        done = plane.work_off()
        assert done[:2] == [CopyCluster(branch, project.main), StartCompute(branch, endpoint)]
        (stop,) = done[2:]
        assert isinstance(stop, StopClusters)
        assert set(stop.ids) == {project.main, branch}
        assert {row.running_on for row in plane.rows(Endpoint)} == {None}
        plane.request("POST", f"{project.path}/recover")
        assert project.state() == "idle"
        plane.request("POST", f"{project.endpoint_path}/start")
        assert plane.work_off() == [StartCompute(project.main, project.endpoint)]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "", {"branch": {"name": "renamed"}}),
        ("POST", "/set_as_default", None),
        ("PUT", "/backup_schedule", {"schedule": []}),
    ],
)
def test_changes_of_records_need_no_work(method: str, path: str, body: object) -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        plane.request(method, f"{project.main_path}{path}", body)
        assert plane.ready() == []


@pytest.mark.fact("projects-17", "projects-18")
def test_default_version_is_the_newest_that_is_installed() -> None:
    with DrivenControlPlane() as plane:
        created = plane.request("POST", "/projects", {"project": {}})
        assert created["project"]["pg_version"] == 18
    with DrivenControlPlane(postgres=None) as plane:
        created = plane.request("POST", "/projects", {"project": {}})
        assert created["project"]["pg_version"] == 18


def test_missing_version_is_refused_with_the_versions_that_are_installed() -> None:
    with DrivenControlPlane() as plane:
        refused = plane.refused("POST", "/projects", {"project": {"pg_version": 17}})
        assert refused.status == 400
        assert "project.pg_version: Postgres 17 is not installed" in refused.message
        assert refused.message.endswith("use 18 or 16")
        assert plane.request("GET", "/projects")["projects"] == []


def test_anonymized_branches_are_refused() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        refused = plane.refused("POST", f"{project.path}/branch_anonymized", {})
        assert (refused.status, "extension 'anon'" in refused.message) == (422, True)


def test_only_connection_uris_have_the_address_of_the_proxy() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        endpoint = plane.request("GET", project.endpoint_path)["endpoint"]
        shown = plane.request("GET", project.path)["project"]
        assert endpoint["proxy_host"] == shown["proxy_host"] == "us-east-2.aws.neon.invalid"
        assert endpoint["host"] == f"{endpoint['id']}.us-east-2.aws.neon.invalid"
        names = {"database_name": "neondb", "role_name": "neondb_owner"}
        uri = plane.request("GET", f"{project.path}/connection_uri", **names)["uri"]
        assert "@127.0.0.1:" in uri
