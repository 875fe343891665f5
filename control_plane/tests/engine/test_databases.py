"""The tables as the driver of the real databases reads and changes them."""

from datetime import datetime
from typing import Protocol

import pytest

from control_plane.tests.driven import POSTGRES, DrivenControlPlane, DrivenProject
from neonctl_local.clock import SECOND, instant
from neonctl_local.engine import databases, operations, servers, sql_changes
from neonctl_local.engine.databases import ComputeRoute, DesiredState
from neonctl_local.engine.lifecycle import Failure
from neonctl_local.engine.sql_changes import Changes
from neonctl_local.engine.work import SuspendCompute
from neonctl_local.settings import BackgroundIntervals, PostgresRules
from neonctl_local.storage.tables import Branch, Database, Endpoint

WEEK = 7 * 86400


class Copy(Protocol):
    """Copies the first branch at a point in time. Returns what the copy must contain."""

    def __call__(
        self, plane: DrivenControlPlane, project: DrivenProject, /, **point: str
    ) -> DesiredState: ...


def add_compute(plane: DrivenControlPlane, project: DrivenProject, **spec: object) -> str:
    """Add a read_only compute to the first branch. Return its id, without doing its work."""
    endpoint = {"branch_id": project.main, "type": "read_only", **spec}
    created = plane.request("POST", f"{project.path}/endpoints", {"endpoint": endpoint})
    return str(created["endpoint"]["id"])


def test_desired_roles_have_passwords_unless_they_cannot_log_in() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        path = f"{project.main_path}/roles"
        plane.request("POST", path, {"role": {"name": "reader", "no_login": True}})
        plane.work_off()
        revealed = plane.request("GET", f"{path}/neondb_owner/reveal_password")
        desired = plane.run(databases.desired, project.main)
        assert desired.roles == [("neondb_owner", revealed["password"]), ("reader", None)]
        assert desired.databases == [("neondb", "neondb_owner")]
        assert revealed["password"] not in repr(desired)


def test_desired_settings_are_those_of_the_project_and_its_computes() -> None:
    with DrivenControlPlane() as plane:
        defaults = {"pg_settings": {"work_mem": "8MB", "statement_timeout": "5s"}}
        project = DrivenProject(plane, default_endpoint_settings=defaults)
        own = {"pg_settings": {"work_mem": "16MB"}}
        plane.request("PATCH", project.endpoint_path, {"endpoint": {"settings": own}})
        reader = {"pg_settings": {"work_mem": "1MB", "lock_timeout": "1s"}}
        add_compute(plane, project, settings=reader)
        assert plane.run(databases.desired, project.main).settings == {
            "work_mem": "16MB",
            "statement_timeout": "5s",
            "lock_timeout": "1s",
        }


@pytest.mark.fact("logical-replication-1")
def test_logical_replication_of_the_project_sets_the_wal_level() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        plane.request("PATCH", project.path, {"project": {"settings": {"hipaa": False}}})
        assert plane.run(databases.desired, project.main).settings == {}
        settings = {"enable_logical_replication": True}
        plane.request("PATCH", project.path, {"project": {"settings": settings}})
        assert plane.run(databases.desired, project.main).settings == {"wal_level": "logical"}


def test_renamed_database_keeps_its_former_name_until_it_is_applied() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        path = f"{project.main_path}/databases"
        plane.request("PATCH", f"{path}/neondb", {"database": {"name": "shop"}})
        desired = plane.run(databases.desired, project.main)
        assert desired.databases == [("shop", "neondb_owner")]
        assert desired.renamed == {"neondb": "shop"}
        plane.work_off()
        assert plane.run(databases.desired, project.main).renamed == {}


def test_former_name_is_kept_if_it_could_not_be_applied() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        path = f"{project.main_path}/databases"
        for before, after in (("neondb", "shop"), ("shop", "store")):
            plane.request("PATCH", f"{path}/{before}", {"database": {"name": after}})
            plane.finish(*plane.ready(), error="the server does not respond")
            plane.clock.advance(1)
        desired = plane.run(databases.desired, project.main)
        assert desired.renamed == {"neondb": "store", "shop": "store"}
        new = {"database": {"name": "shop", "owner_name": "neondb_owner"}}
        refused = plane.refused("POST", path, new)
        assert refused.status == 409
        assert "may still have the name 'shop' in Postgres" in refused.message
        plane.request("PATCH", f"{path}/store", {"database": {"name": "neondb"}})
        assert plane.run(databases.desired, project.main).renamed == {
            "shop": "neondb",
            "store": "neondb",
        }
        plane.work_off()
        plane.request("POST", path, new)


@pytest.mark.parametrize("real", [True, False])
def test_file_is_used_with_the_databases_that_it_was_created_with(real: bool) -> None:
    with DrivenControlPlane(postgres=POSTGRES if real else None) as plane:
        for kind in (True, False):
            plane.run(databases.check_kind, real=kind)
        plane.request("POST", "/projects", {"project": {}})
        plane.run(databases.check_kind, real=real)
        with pytest.raises(RuntimeError, match="the data file has") as refused:
            plane.run(databases.check_kind, real=not real)
        assert ("start it with postgres=True" in str(refused.value)) == real


def test_branch_inherits_names_that_are_not_applied_yet() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        path = f"{project.main_path}/databases/neondb"
        plane.request("PATCH", path, {"database": {"name": "shop"}})
        plane.finish(*plane.ready(), error="the server does not respond")
        created = project.branch()
        plane.work_off()
        assert plane.run(databases.desired, created["branch"]["id"]).renamed == {"neondb": "shop"}


def rename(plane: DrivenControlPlane, project: DrivenProject, name: str, new_name: str) -> None:
    """Rename a database of the first branch a second later, also in Postgres."""
    plane.clock.advance(1)
    path = f"{project.main_path}/databases/{name}"
    plane.request("PATCH", path, {"database": {"name": new_name}})
    plane.work_off()


def add_database(plane: DrivenControlPlane, project: DrivenProject, name: str) -> None:
    """Create a database of the first branch, also in Postgres."""
    spec = {"database": {"name": name, "owner_name": "neondb_owner"}}
    plane.request("POST", f"{project.main_path}/databases", spec)
    plane.work_off()


def branch_from(plane: DrivenControlPlane, project: DrivenProject, **point: str) -> DesiredState:
    """Create a branch from a point in time. Return what its cluster must contain."""
    parent = {f"parent_{name}": value for name, value in point.items()}
    created = project.branch(compute=False, **parent)
    return plane.run(databases.desired, created["branch"]["id"])


def restored_to(plane: DrivenControlPlane, project: DrivenProject, **point: str) -> DesiredState:
    """Restore the first branch to a point in time. Return what its cluster must contain."""
    body = {"source_branch_id": project.main, "preserve_under_name": "before"}
    body |= {f"source_{name}": value for name, value in point.items()}
    plane.request("POST", f"{project.main_path}/restore", body)
    return plane.run(databases.desired, project.main)


def snapshot_of(plane: DrivenControlPlane, project: DrivenProject, **point: str) -> DesiredState:
    """Restore a snapshot of a point in time. Return what the cluster of the new branch contains."""
    taken = plane.request("POST", f"{project.main_path}/snapshot", **point)["snapshot"]
    plane.work_off()
    path = f"{project.path}/snapshots/{taken['id']}/restore"
    created = plane.request("POST", path, {"name": "restored"})
    return plane.run(databases.desired, created["branch"]["id"])


def past_server(plane: DrivenControlPlane, project: DrivenProject, **point: str) -> DesiredState:
    """Return what a server with the data of a point in time must contain."""
    at = instant(datetime.fromisoformat(point["timestamp"])) if "timestamp" in point else None
    return plane.run(databases.desired, project.main, at, point.get("lsn"))


@pytest.mark.parametrize("by", ["timestamp", "lsn"])
@pytest.mark.parametrize("copy", [branch_from, restored_to, snapshot_of, past_server])
def test_copy_of_the_time_before_a_rename_is_renamed(copy: Copy, by: str) -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        point = {by: plane.clock().isoformat() if by == "timestamp" else "0/1"}
        rename(plane, project, "neondb", "shop")
        rename(plane, project, "shop", "store")
        assert plane.run(databases.desired, project.main).renamed == {}
        copied = copy(plane, project, **point)
        assert copied.databases == [("store", "neondb_owner")]
        assert copied.renamed == {"neondb": "store", "shop": "store"}


def test_copy_of_the_time_after_a_rename_is_not_renamed() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        rename(plane, project, "neondb", "shop")
        at = plane.clock().isoformat()
        rename(plane, project, "shop", "store")
        assert branch_from(plane, project, timestamp=at).renamed == {"shop": "store"}
        add_database(plane, project, "neondb")
        now = branch_from(plane, project, timestamp=plane.clock().isoformat())
        assert now.renamed == {}
        assert [name for name, _ in now.databases] == ["store", "neondb"]


@pytest.mark.parametrize("postgres", [POSTGRES, None])
def test_copies_of_databases_whose_names_were_used_again_are_not_mixed_up(
    postgres: PostgresRules | None,
) -> None:
    with DrivenControlPlane(postgres=postgres) as plane:
        project = DrivenProject(plane)
        for name in ("other", "dropped"):
            add_database(plane, project, name)
        at = plane.clock().isoformat()
        for name, new in (("neondb", "kept"), ("other", "neondb"), ("kept", "other")):
            rename(plane, project, name, new)
        plane.request("DELETE", f"{project.main_path}/databases/dropped")
        plane.work_off()
        rename(plane, project, "other", "dropped")
        add_database(plane, project, "other")
        copied = branch_from(plane, project, timestamp=at)
        # "neondb" is now "dropped", and "other" is now "neondb": both names were taken then.
        assert [name for name, _ in copied.databases] == ["neondb", "other", "dropped"]
        possible = {"kept": "neondb"} if postgres else {}
        assert copied.renamed == possible


def test_copy_of_a_database_has_its_owner_even_if_the_role_is_newer() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        at = plane.clock().isoformat()
        plane.clock.advance(1)
        for name in ("late", "later"):
            plane.request("POST", f"{project.main_path}/roles", {"role": {"name": name}})
        owner = {"database": {"owner_name": "late"}}
        plane.request("PATCH", f"{project.main_path}/databases/neondb", owner)
        plane.work_off()
        copied = branch_from(plane, project, timestamp=at)
        assert copied.databases == [("neondb", "late")]
        assert [name for name, _ in copied.roles] == ["neondb_owner", "late"]


def test_former_names_from_before_the_history_are_forgotten() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        rename(plane, project, "neondb", "shop")
        plane.clock.advance(8 * 86400)
        rename(plane, project, "shop", "store")
        (database,) = plane.rows(Database)
        assert "shop" in database.former_names
        assert "neondb" not in database.former_names


def test_renames_wait_for_running_operations_that_apply_names() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        path = f"{project.main_path}/databases"
        plane.request("PATCH", f"{path}/neondb", {"database": {"name": "shop"}})
        again = {"database": {"name": "store"}}
        refused = plane.refused("PATCH", f"{path}/shop", again)
        assert (refused.status, "apply_config" in refused.message) == (423, True)
        plane.work_off()
        plane.request("PATCH", f"{path}/shop", again)


def test_new_database_does_not_get_the_data_of_a_deleted_one() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        path = f"{project.main_path}/databases"
        plane.request("DELETE", f"{path}/neondb")
        again = {"database": {"name": "neondb", "owner_name": "neondb_owner"}}
        assert plane.refused("POST", path, again).status == 423
        plane.request("POST", path, {"database": again["database"] | {"name": "other"}})
        plane.work_off()
        plane.request("POST", path, again)


def test_route_names_the_branch_and_state_of_a_compute() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        state = ("active", False, "read_write", False, "{}")
        expected = ComputeRoute(project.id, project.main, *state)
        assert plane.run(databases.route, project.endpoint) == expected


@pytest.mark.parametrize("deleted", ["endpoint_path", "path"])
def test_deleted_compute_has_no_route(deleted: str) -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        plane.request("DELETE", getattr(project, deleted))
        assert plane.run(databases.route, project.endpoint) is None
    with DrivenControlPlane() as plane:
        assert plane.run(databases.route, "ep-unknown-1") is None


@pytest.mark.fact("connections-8")
def test_connection_starts_an_idle_compute_once() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        assert plane.run(databases.wake, project.endpoint) is None
        plane.request("POST", f"{project.endpoint_path}/suspend")
        plane.work_off()
        first = plane.run(databases.wake, project.endpoint)
        second = plane.run(databases.wake, project.endpoint)
        assert first is not None
        assert first == second
        (start,) = plane.ready()
        assert start.id == first.id
        plane.finish(start)
        planned = plane.run(databases.wake, project.endpoint)
        assert planned is not None
        assert (planned.id, planned.is_open) == (first.id, False)
        plane.clock.advance(1)
        assert plane.run(databases.wake, project.endpoint) is None


def test_connection_to_an_active_compute_without_server_starts_it() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        plane.run(lambda tx: tx.execute("UPDATE endpoints SET running_on = NULL"))
        assert plane.run(databases.wake, project.endpoint) is not None
        assert [operation.action for operation in plane.ready()] == ["start_compute"]


def test_connection_reattaches_a_detached_project() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        plane.request("POST", f"{project.endpoint_path}/suspend")
        plane.work_off()
        plane.clock.advance(8 * 86400)
        plane.run(databases.wake, project.endpoint)
        actions = [operation["action"] for operation in plane.operations(project.id)]
        assert [action for action in actions if action != "check_availability"][-3:] == [
            *("tenant_detach", "tenant_reattach", "start_compute")
        ]


def test_server_is_shared_by_the_computes_of_a_branch() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        reader = add_compute(plane, project)
        assert not plane.run(databases.is_shared, project.main, project.endpoint)
        plane.work_off()
        assert plane.run(databases.is_shared, project.main, project.endpoint)
        assert plane.run(databases.is_shared, project.main, reader)
        plane.request("POST", f"{project.endpoint_path}/suspend")
        plane.work_off()
        assert not plane.run(databases.is_shared, project.main, reader)


def test_servers_are_used_by_computes_and_by_unfinished_work() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        child = project.branch()["branch"]["id"]
        servers = {project.main, child, "br-other-1"}
        assert plane.run(databases.unused_servers, servers) == {"br-other-1"}
        plane.work_off()
        assert plane.run(databases.unused_servers, servers) == {"br-other-1", child}
        plane.run(operations.fail_next, "suspend_compute", Failure(), 1)
        plane.request("DELETE", project.endpoint_path)
        plane.work_off()
        assert plane.run(databases.unused_servers, servers) == servers


def test_cluster_of_unfinished_work_is_kept_with_its_temporary_cluster() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        child = project.branch()["branch"]["id"]
        ids = {project.main, child, f"{child}.new", f"{child}.old", "br-other-1"}
        assert plane.run(databases.unreferenced, ids) == {"br-other-1"}
        plane.work_off()
        unreferenced = {f"{child}.new", f"{child}.old", "br-other-1"}
        assert plane.run(databases.unreferenced, ids) == unreferenced


def test_deleted_branch_keeps_its_cluster_while_it_is_recoverable() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        child = project.branch()["branch"]["id"]
        plane.work_off()
        plane.request("DELETE", f"{project.path}/branches/{child}")
        plane.work_off()
        plane.clock.advance(WEEK - 60)
        assert plane.run(databases.unreferenced, {project.main, child}) == set()
        plane.clock.advance(61)
        assert plane.run(databases.unreferenced, {project.main, child}) == {child}


def test_permanent_deletion_of_a_deleted_branch_frees_its_cluster() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        child = project.branch()["branch"]["id"]
        path = f"{project.path}/branches/{child}"
        plane.work_off()
        plane.request("DELETE", path)
        plane.request("DELETE", path, hard_delete="true")
        assert plane.run(databases.unreferenced, {project.main, child}) == {child}


def test_deleted_branch_is_lost_with_its_parent_even_if_a_restore_made_the_parent_later() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        restored = project.branch()["branch"]["id"]
        child = project.branch(parent_id=restored)["branch"]["id"]
        plane.clock.advance(1)
        body = {"source_branch_id": project.main, "preserve_under_name": "kept"}
        plane.request("POST", f"{project.path}/branches/{restored}/restore", body)
        plane.work_off()
        (kept,) = [branch.id for branch in plane.rows(Branch) if branch.name == "kept"]
        plane.request("DELETE", f"{project.path}/branches/{child}")
        plane.request("DELETE", f"{project.path}/branches/{kept}", hard_delete="true")
        plane.work_off()
        assert plane.run(databases.unreferenced, {restored, child, kept}) == {child, kept}


def test_deleted_project_keeps_its_clusters_while_it_is_recoverable() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        taken = plane.request("POST", f"{project.main_path}/snapshot")["snapshot"]["id"]
        plane.work_off()
        plane.request("DELETE", project.path)
        plane.work_off()
        ids = {project.main, taken}
        assert plane.run(databases.unused_servers, ids) == ids
        assert plane.run(databases.unreferenced, ids) == set()
        plane.clock.advance(WEEK)
        assert plane.run(databases.unreferenced, ids) == ids


@pytest.mark.fact("connections-17")
def test_busy_compute_is_not_suspended() -> None:
    with DrivenControlPlane(intervals=BackgroundIntervals(suspend_after=60)) as plane:
        project = DrivenProject(plane)
        for _ in range(5):
            plane.clock.advance(50)
            note(plane, project, busy=True)
            assert project.state() == "active"
        plane.clock.advance(61)
        plane.run(servers.suspend_due, plane.now)
        assert plane.works() == [SuspendCompute(project.main, project.endpoint)]


def test_last_activity_postpones_the_suspension_but_never_brings_it_forward() -> None:
    with DrivenControlPlane(intervals=BackgroundIntervals(suspend_after=60)) as plane:
        project = DrivenProject(plane)
        plane.clock.advance(50)
        (row,) = plane.rows(Endpoint)
        note(plane, project, last_active=plane.now - 3600 * SECOND)
        assert plane.rows(Endpoint)[0].idle_at == row.idle_at
        note(plane, project, last_active=plane.now - 10 * SECOND)
        assert plane.rows(Endpoint)[0].idle_at == plane.now + 50 * SECOND
        note(plane, project, last_active=plane.now + 3600 * SECOND)
        assert plane.rows(Endpoint)[0].idle_at == plane.now + 60 * SECOND
        shown = plane.request("GET", project.endpoint_path)["endpoint"]
        assert shown["last_active"] == "2026-01-01T00:00:53Z"
        listed = plane.request("GET", project.path)["project"]
        assert listed["compute_last_active_at"] == "2026-01-01T00:00:53Z"


def test_compute_that_is_never_suspended_stays_up_when_it_is_used() -> None:
    with DrivenControlPlane(intervals=BackgroundIntervals(suspend_after=None)) as plane:
        project = DrivenProject(plane)
        note(plane, project, busy=True)
        (row,) = plane.rows(Endpoint)
        assert (row.used_at, row.idle_at) == (plane.now, None)


def test_branch_shows_its_size_when_it_is_known() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        assert "logical_size" not in plane.request("GET", project.main_path)["branch"]
        for size in (7_000_000, None):
            note(plane, project, logical_size=size)
            shown = plane.request("GET", project.main_path)["branch"]
            assert shown["logical_size"] == 7_000_000
        plane.run(
            databases.note_activity, "br-deleted", busy=True, last_active=None, logical_size=1
        )


def test_crash_makes_computes_idle_and_is_shown() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        reader = add_compute(plane, project)
        plane.work_off()
        plane.run(databases.crashed, project.main, "the server was killed by signal 9")
        for endpoint_id in (project.endpoint, reader):
            route = plane.run(databases.route, endpoint_id)
            assert route is not None
            assert route.state == "idle"
        failed = plane.operations(project.id)[-1]
        assert (failed["action"], failed["status"]) == ("check_availability", "failed")
        assert failed["error"] == "the server was killed by signal 9"
        assert (failed["branch_id"], failed["endpoint_id"]) == (project.main, project.endpoint)
        assert plane.run(databases.wake, project.endpoint) is not None


def test_crash_leaves_running_operations_alone() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        plane.request("POST", f"{project.endpoint_path}/restart")
        plane.run(databases.crashed, project.main, "the server was killed by signal 9")
        plane.work_off()
        assert project.state() == "active"


def test_second_crash_of_a_branch_is_not_shown_again() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        for _ in range(2):
            plane.run(databases.crashed, project.main, "killed")
        actions = [operation["action"] for operation in plane.operations(project.id)]
        assert actions.count("check_availability") == 1


def test_all_computes_are_idle_after_a_restart_of_the_control_plane() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        created = project.branch(compute=True)
        plane.finish(*plane.ready())
        plane.clock.advance(1)
        plane.run(databases.stop_all)
        assert project.state() == "idle"
        assert [operation.action for operation in plane.ready()] == ["start_compute"]
        plane.work_off()
        started = created["branch"]["id"]
        servers = {project.main, started}
        assert plane.run(databases.unused_servers, servers) == {project.main}
        assert plane.rows(Branch, "WHERE state_operation IS NOT NULL") == []


def note(
    plane: DrivenControlPlane,
    project: DrivenProject,
    *,
    busy: bool = False,
    last_active: int | None = None,
    logical_size: int | None = None,
) -> None:
    """Report the activity of the first branch."""
    plane.run(
        databases.note_activity,
        project.main,
        busy=busy,
        last_active=last_active,
        logical_size=logical_size,
    )


def test_changes_in_sql_of_a_deleted_branch_are_stored_after_its_recovery() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        id = project.branch(name="preview")["branch"]["id"]
        plane.work_off()
        path = f"{project.path}/branches/{id}"
        plane.request("DELETE", path)
        changes = Changes({"app": None}, {}, frozenset(), frozenset())

        def store() -> bool:
            return plane.run(sql_changes.store, id, changes, lambda _one, _other: False)

        assert not store()
        plane.work_off()
        plane.request("POST", f"{path}/recover")
        assert store()
        roles = plane.request("GET", f"{path}/roles")["roles"]
        assert {role["name"] for role in roles} == {"neondb_owner", "app"}


def test_role_without_a_password_gets_none_on_a_branch_of_a_protected_one() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        changes = Changes({"app": ""}, {}, frozenset(), frozenset())
        plane.run(sql_changes.store, project.main, changes, lambda _one, _other: False)
        plane.request("PATCH", project.main_path, {"branch": {"protected": True}})
        id = project.branch()["branch"]["id"]
        assert ("app", "") in plane.run(databases.desired, id).roles
