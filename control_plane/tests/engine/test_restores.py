"""A restore whose copy fails leaves the branch as it was."""

from typing import Any

import pytest

from control_plane.tests.driven import DrivenControlPlane, DrivenProject
from neonctl_local.engine import databases, operations, sql_changes
from neonctl_local.engine.lifecycle import Failure
from neonctl_local.engine.sql_changes import Changes
from neonctl_local.engine.work import ReplaceCluster, SuspendCompute
from neonctl_local.postgres.configuration import verifies


class Scenario:
    """A branch with a database ``shop``, and a child that has a database ``archive`` instead."""

    def __init__(self, plane: DrivenControlPlane) -> None:
        self.plane = plane
        self.project = DrivenProject(plane)
        self.child: str = self.project.branch(name="child")["branch"]["id"]
        plane.work_off()
        for branch_id, name in ((self.project.main, "shop"), (self.child, "archive")):
            path = f"{self.project.path}/branches/{branch_id}/databases"
            owner = {"name": name, "owner_name": "neondb_owner"}
            plane.request("POST", path, {"database": owner})
        plane.work_off()
        self.before = self.branch()

    def restore(self) -> Any:  # Any: as DrivenControlPlane.request
        """Restore the branch from its child."""
        body = {"source_branch_id": self.child} | KEPT
        return self.plane.request("POST", f"{self.project.main_path}/restore", body)

    def branch(self) -> Any:  # Any: as DrivenControlPlane.request
        """Return the branch, without the time of its last change."""
        branch = self.plane.request("GET", self.project.main_path)["branch"]
        return {name: value for name, value in branch.items() if name not in CHANGING}

    def databases(self) -> list[str]:
        """Return the names of the databases that the cluster of the branch must have."""
        desired = self.plane.run(databases.desired, self.project.main)
        return [name for name, _ in desired.databases]

    def store(self, changes: Changes) -> bool:
        """Store what clients changed with SQL in the branch. Return whether that is possible."""
        return self.plane.run(sql_changes.store, self.project.main, changes, verifies)

    def names(self) -> set[str]:
        """Return the names of the branches."""
        page = self.plane.request("GET", f"{self.project.path}/branches")
        return {branch["name"] for branch in page["branches"]}


KEPT = {"preserve_under_name": "kept"}
CHANGING = {"updated_at", "state_changed_at"}


def test_finished_restore_has_the_databases_of_the_source() -> None:
    with DrivenControlPlane() as plane:
        scenario = Scenario(plane)
        scenario.restore()
        suspend, replace, _ = plane.work_off()
        assert isinstance(suspend, SuspendCompute)
        assert isinstance(replace, ReplaceCluster)
        assert (replace.branch_id, replace.source) == (scenario.project.main, scenario.child)
        assert scenario.databases() == ["neondb", "archive"]
        assert scenario.names() == {"main", "child", "kept"}
        assert scenario.project.state() == "active"


def test_failed_restore_leaves_databases_and_branches_as_they_were() -> None:
    with DrivenControlPlane() as plane:
        scenario = Scenario(plane)
        scenario.restore()
        plane.finish(*plane.ready())
        plane.clock.advance(1)
        plane.finish(*plane.ready(), error="no space left on device")
        plane.clock.advance(1)
        assert scenario.databases() == ["neondb", "shop"]
        assert scenario.names() == {"main", "child"}
        assert scenario.branch() == scenario.before
        child = plane.request("GET", f"{scenario.project.path}/branches/{scenario.child}")
        assert child["branch"]["parent_id"] == scenario.project.main
        assert scenario.project.state() == "idle"


def test_branch_that_a_failed_restore_preserved_is_not_archived() -> None:
    """It has no child, which would keep it from being archived."""
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        at = plane.request("GET", project.main_path)["branch"]["created_at"]
        body = {
            "source_branch_id": project.main,
            "source_timestamp": at,
            "preserve_under_name": "kept",
        }
        plane.request("POST", f"{project.main_path}/restore", body)
        plane.finish(*plane.ready())
        plane.clock.advance(1)
        plane.finish(*plane.ready(), error="no space left on device")
        plane.clock.advance(40 * 24 * 3600)
        branch = plane.request("GET", project.main_path)["branch"]  # does the archiving
        assert branch["current_state"] == "ready"
        page = plane.request("GET", f"{project.path}/operations")
        assert "timeline_archive" not in {one["action"] for one in page["operations"]}


def test_restore_to_the_past_can_be_repeated_after_a_failure() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        at = plane.request("GET", project.main_path)["branch"]["created_at"]
        for kept, error in (("first", "no space left on device"), ("second", None)):
            body = {"source_branch_id": project.main, "source_timestamp": at}
            path = f"{project.main_path}/restore"
            plane.request("POST", path, body | {"preserve_under_name": kept})
            plane.finish(*plane.ready())  # suspend_compute
            plane.clock.advance(1)
            plane.finish(*plane.ready(), error=error)
            plane.work_off()
        page = plane.request("GET", f"{project.main_path}/databases")
        assert [database["name"] for database in page["databases"]] == ["neondb"]


@pytest.mark.parametrize("action", ["create_branch", "suspend_compute"])
def test_restore_that_is_planned_to_fail_changes_nothing(action: str) -> None:
    with DrivenControlPlane() as plane:
        scenario = Scenario(plane)
        plane.run(operations.fail_next, action, Failure(), 1)
        scenario.restore()
        plane.work_off()
        assert scenario.databases() == ["neondb", "shop"]
        assert scenario.names() == {"main", "child"}
        assert scenario.branch() == scenario.before


def test_preserved_branch_is_ready_after_the_restore() -> None:
    with DrivenControlPlane() as plane:
        scenario = Scenario(plane)
        scenario.restore()
        (kept,) = plane.request("GET", f"{scenario.project.path}/branches", search="kept")[
            "branches"
        ]
        assert (kept["current_state"], kept["pending_state"]) == ("init", "ready")
        plane.work_off()
        kept = plane.request("GET", f"{scenario.project.path}/branches/{kept['id']}")["branch"]
        assert kept["current_state"] == "ready"
        desired = plane.run(databases.desired, kept["id"])
        assert [name for name, _ in desired.databases] == ["neondb", "shop"]


def test_changes_wait_for_a_running_restore() -> None:
    with DrivenControlPlane() as plane:
        scenario = Scenario(plane)
        scenario.restore()
        project, main, child = scenario.project, scenario.project.main, scenario.child
        reverse = {"source_branch_id": main, "preserve_under_name": "x"}
        for path, body in (
            (f"{project.main_path}/restore", {"source_branch_id": child}),
            (f"{project.path}/branches/{child}/restore", reverse),
            (f"{project.main_path}/roles", {"role": {"name": "reader"}}),
            (f"{project.main_path}/snapshot", None),
            (f"{project.path}/branches", {"branch": {"parent_id": main}}),
        ):
            refused = plane.refused("POST", path, body)
            assert (refused.status, "is being restored" in refused.message) == (423, True)
        plane.work_off()
        project.branch()


def test_change_in_sql_during_a_restore_is_stored_after_its_failure() -> None:
    """Stored during the restore, it would be undone, and the next start would drop the database."""
    with DrivenControlPlane() as plane:
        scenario = Scenario(plane)
        created = Changes({}, {"own": "neondb_owner"}, frozenset(), frozenset())
        scenario.restore()
        assert not scenario.store(created)
        plane.finish(*plane.ready())
        plane.clock.advance(1)
        plane.finish(*plane.ready(), error="no space left on device")
        plane.clock.advance(1)
        assert scenario.store(created)
        assert scenario.databases() == ["neondb", "shop", "own"]


def test_database_that_is_dropped_in_sql_during_a_restore_comes_back_with_it() -> None:
    with DrivenControlPlane() as plane:
        scenario = Scenario(plane)
        scenario.restore()
        assert not scenario.store(Changes({}, {}, frozenset(), frozenset({"neondb"})))
        plane.work_off()
        assert scenario.databases() == ["neondb", "archive"]


def test_restore_waits_for_an_operation_that_applies_the_databases_of_the_branch() -> None:
    """It would apply those of the source to the old data, and so drop the database ``shop``."""
    with DrivenControlPlane() as plane:
        scenario = Scenario(plane)
        path = f"{scenario.project.main_path}/databases"
        more = {"name": "more", "owner_name": "neondb_owner"}
        plane.request("POST", path, {"database": more})
        body = {"source_branch_id": scenario.child}
        refused = plane.refused("POST", f"{scenario.project.main_path}/restore", body | KEPT)
        assert (refused.status, "apply_config" in refused.message) == (423, True)
        assert scenario.databases() == ["neondb", "shop", "more"]
        plane.work_off()
        scenario.restore()


def test_failed_restore_of_a_snapshot_gives_the_target_back_its_name_and_computes() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        jwks = {
            "jwks_url": "https://example.com/k",
            "provider_name": "x",
            "branch_id": project.main,
        }
        plane.request("POST", f"{project.path}/jwks", jwks)
        data_api = f"{project.main_path}/data-api/neondb"
        plane.request("POST", data_api)
        snapshot = plane.request("POST", f"{project.main_path}/snapshot")["snapshot"]["id"]
        plane.work_off()
        path = f"{project.path}/snapshots/{snapshot}/restore"
        body = {"finalize_restore": True, "name": "again"}
        restored = plane.request("POST", path, body)["branch"]
        assert (restored["name"], restored["default"]) == ("main", True)
        assert plane.refused("GET", data_api).status == 404
        plane.finish(*plane.ready(), error="no space left on device")
        plane.clock.advance(5)
        assert plane.request("GET", data_api)["status"] == "active"
        main = plane.request("GET", project.main_path)["branch"]
        assert (main["name"], main["default"], main["current_state"]) == ("main", True, "ready")
        failed = plane.request("GET", f"{project.path}/branches/{restored['id']}")["branch"]
        assert (failed["name"], failed["default"], failed["current_state"]) == (
            *(restored["id"], False),
            "init",
        )
        endpoint = plane.request("GET", project.endpoint_path)["endpoint"]
        assert (endpoint["branch_id"], endpoint["current_state"]) == (project.main, "active")
        (shown,) = plane.request("GET", f"{project.path}/jwks")["jwks"]
        assert shown["branch_id"] == project.main
        assert plane.run(databases.unused_servers, {project.main}) == set()


def test_failed_restore_leaves_a_target_that_was_deleted_meanwhile() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        snapshot = plane.request("POST", f"{project.main_path}/snapshot")["snapshot"]["id"]
        plane.work_off()
        path = f"{project.path}/snapshots/{snapshot}/restore"
        restored = plane.request("POST", path, {"finalize_restore": True})["branch"]
        copy, *_ = plane.ready()
        plane.request("DELETE", project.main_path)
        plane.finish(copy, error="no space left on device")
        plane.clock.advance(5)
        shown = plane.request("GET", f"{project.path}/branches/{restored['id']}")["branch"]
        assert (shown["name"], shown["default"]) == ("main", True)


def test_failed_restore_leaves_names_that_others_have_taken_meanwhile() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        data = project.branch(init_source="schema-only", name="data")["branch"]["id"]
        plane.work_off()
        taken = plane.request("POST", f"{project.path}/branches/{data}/snapshot")["snapshot"]
        plane.work_off()
        path = f"{project.path}/snapshots/{taken['id']}/restore"
        for is_deleted in (True, False):
            restored = plane.request("POST", path, {"finalize_restore": True})["branch"]
            (copy,) = plane.ready()
            assert restored["name"] == "data"
            if is_deleted:
                plane.request("DELETE", f"{project.path}/branches/{restored['id']}")
            other = project.branch(name="data" if is_deleted else restored["id"])["branch"]
            plane.finish(copy, error="no space left on device")
            plane.work_off()
            shown = plane.request("GET", f"{project.path}/branches/{data}")["branch"]
            assert shown["name"] == ("data (old)" if is_deleted else "data")
            plane.request("DELETE", f"{project.path}/branches/{other['id']}")
            plane.work_off()
            renamed = {"branch": {"name": "data"}}
            plane.request("PATCH", f"{project.path}/branches/{data}", renamed)


def test_compute_is_idle_when_it_fails_to_start_on_another_branch() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        child = project.branch()["branch"]["id"]
        plane.work_off()
        plane.request("PATCH", project.endpoint_path, {"endpoint": {"branch_id": child}})
        plane.finish(*plane.ready(), error="the server does not stop")
        plane.clock.advance(1)
        assert project.state() == "idle"
        assert plane.run(databases.unused_servers, {project.main}) == {project.main}


def test_failed_restore_leaves_neon_auth_as_it_was() -> None:
    with DrivenControlPlane() as plane:
        scenario = Scenario(plane)
        path, provider = f"{scenario.project.main_path}/auth", {"auth_provider": "better_auth"}
        plane.request("POST", path, provider | {"database_name": "shop"})
        plane.request("POST", f"{path}/users", {"email": "ada@example.com"})
        before = plane.request("GET", path)
        scenario.restore()
        assert plane.refused("GET", path).status == 404
        assert plane.refused("POST", path, provider).status == 423
        plane.finish(*plane.ready())
        plane.clock.advance(1)
        plane.finish(*plane.ready(), error="no space left on device")
        plane.clock.advance(1)
        assert plane.request("GET", path) == before
        user = {"email": "ada@example.com"}
        assert plane.refused("POST", f"{path}/users", user).status == 409


SERVER = {"type": "standard", "host": "h", "port": 1, "username": "u", "password": "p"}
DOMAIN = {"auth_provider": "better_auth", "domain": "https://example.com"}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("DELETE", "", {}),
        ("PATCH", "/config", {"name": "Shop"}),
        ("POST", "/domains", DOMAIN),
        ("DELETE", "/domains", {"auth_provider": "better_auth", "domains": []}),
        ("POST", "/oauth_providers", {"id": "github"}),
        ("PATCH", "/oauth_providers/google", {"client_id": "x"}),
        ("DELETE", "/oauth_providers/google", None),
        ("PATCH", "/email_provider", SERVER),
        ("PUT", "/webhooks", {"enabled": False}),
        ("POST", "/users", {"email": "bob@example.com"}),
        ("PUT", "/users/USER/role", {"roles": ["admin"]}),
        ("DELETE", "/users/USER", None),
    ],
)
def test_changes_of_neon_auth_wait_for_a_running_restore(
    method: str, path: str, body: object
) -> None:
    with DrivenControlPlane() as plane:
        scenario = Scenario(plane)
        source = f"{scenario.project.path}/branches/{scenario.child}/auth"
        plane.request("POST", source, {"auth_provider": "better_auth"})
        plane.request("POST", f"{source}/oauth_providers", {"id": "google"})
        user = plane.request("POST", f"{source}/users", {"email": "ada@example.com"})["id"]
        scenario.restore()
        changed = f"{scenario.project.main_path}/auth{path.replace('USER', user)}"
        refused = plane.refused(method, changed, body)
        assert (refused.status, "is being restored" in refused.message) == (423, True)
        plane.work_off()
        plane.request(method, changed, body)
