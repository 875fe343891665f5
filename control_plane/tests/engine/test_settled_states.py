"""The states of operations with real work, in any order of requests, work and times."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from control_plane.tests.driven import DrivenControlPlane, DrivenProject
from control_plane.tests.engine.test_operations import ORDER, stage
from neonctl_local import Durations
from neonctl_local.engine import databases, lifecycle, operations, work
from neonctl_local.engine.lifecycle import Failure
from neonctl_local.errors import ApiError
from neonctl_local.storage.tables import Branch, Endpoint, Operation, Snapshot


class SettledStates(RuleBasedStateMachine):
    """A project whose work is done in any possible order, under a clock that jumps."""

    @initialize(default=st.sampled_from([0.0, 1.0, 30.0]), scheduling=st.sampled_from([0.0, 0.5]))
    def start(self, default: float, scheduling: float) -> None:
        durations = Durations(default=default, scheduling=scheduling)
        self.plane = DrivenControlPlane(durations=durations)
        self.plane.__enter__()
        self.project = DrivenProject(self.plane)
        self.stages: dict[str, int] = {}

    def teardown(self) -> None:
        self.plane.__exit__()

    @rule(compute=st.booleans(), archived=st.booleans())
    def create_branch(self, compute: bool, archived: bool) -> None:
        endpoints = [{"type": "read_write"}] if compute else []
        body = {"branch": {"archived": archived}, "endpoints": endpoints}
        self.request_unless_refused("POST", f"{self.project.path}/branches", body)

    @rule(action=st.sampled_from(["start", "suspend", "restart"]))
    def change_compute(self, action: str) -> None:
        self.request_unless_refused("POST", f"{self.project.endpoint_path}/{action}")

    @rule()
    def take_snapshot(self) -> None:
        self.request_unless_refused("POST", f"{self.project.main_path}/snapshot")

    @rule(data=st.data())
    def restore_a_branch(self, data: st.DataObject) -> None:
        # In the order of creation: ids are random.
        rows = self.plane.rows(Branch, "WHERE deleted_at IS NULL ORDER BY rowid")
        index = st.integers(min_value=0, max_value=len(rows) - 1)
        target, source = rows[data.draw(index)].id, rows[data.draw(index)].id
        body = {
            "source_branch_id": source,
            "source_timestamp": "2026-01-01T00:00:00Z",
            "preserve_under_name": f"kept {len(self.stages)} {len(rows)}",
        }
        path = f"{self.project.path}/branches/{target}/restore"
        self.request_unless_refused("POST", path, body)

    @rule(data=st.data(), finalize=st.booleans())
    def restore_a_snapshot(self, data: st.DataObject, finalize: bool) -> None:
        rows = self.plane.rows(Snapshot, "WHERE taken AND deleted_at IS NULL ORDER BY rowid")
        if rows:
            snapshot = data.draw(st.sampled_from(range(len(rows))))
            path = f"{self.project.path}/snapshots/{rows[snapshot].id}/restore"
            self.request_unless_refused("POST", path, {"finalize_restore": finalize})

    @rule(data=st.data(), hard=st.sampled_from(["true", "false"]))
    def delete_a_branch(self, data: st.DataObject, hard: str) -> None:
        rows = self.plane.rows(Branch, "WHERE deleted_at IS NULL ORDER BY rowid")
        branch = data.draw(st.sampled_from(range(len(rows))))
        path = f"{self.project.path}/branches/{rows[branch].id}"
        self.request_unless_refused("DELETE", path, hard_delete=hard)

    @rule(reason=st.just("killed"))
    def crash(self, reason: str) -> None:
        self.plane.run(databases.crashed, self.project.main, reason)

    def request_unless_refused(
        self, method: str, path: str, body: object = None, **query: str
    ) -> None:
        """Send a request that the states of branches may forbid."""
        try:
            self.plane.request(method, path, body, **query)
        except ApiError as error:
            if error.status not in {404, 409, 422, 423}:
                raise

    @rule(
        action=st.sampled_from(["create_branch", "start_compute", "suspend_compute"]),
        retry_after=st.none() | st.sampled_from([0.5, 40.0]),
    )
    def plan_failure(self, action: str, retry_after: float | None) -> None:
        failure = Failure(retry_after=retry_after)
        self.plane.run(operations.fail_next, action, failure, 1)

    @rule(data=st.data(), error=st.none() | st.just("disk full"))
    def do_work(self, data: st.DataObject, error: str | None) -> None:
        ready = self.plane.ready()
        if ready:
            self.plane.finish(data.draw(st.sampled_from(ready)), error=error)

    @rule(seconds=st.sampled_from([0.25, 1.0, 31.0, 400.0]))
    def advance(self, seconds: float) -> None:
        self.plane.clock.advance(seconds)

    @rule()
    def finish_all_work(self) -> None:
        self.plane.work_off()
        self.plane.clock.advance(200)
        assert not any(row.is_open for row in self.plane.rows(Operation))
        assert {row.state_operation for row in self.plane.rows(Endpoint)} <= {None}
        now = self.plane.now
        statuses = {lifecycle.state_at(row, now).status for row in self.plane.rows(Operation)}
        assert statuses <= {"finished", "failed"}
        for endpoint in self.plane.rows(Endpoint, "WHERE deleted_at IS NULL"):
            running_on = endpoint.branch_id if endpoint.state == "active" else None
            assert endpoint.running_on == running_on, endpoint
        assert len(self.plane.rows(Branch, "WHERE is_default AND deleted_at IS NULL")) == 1

    @invariant()
    def statuses_never_go_back(self) -> None:
        if hasattr(self, "project"):
            for operation in self.plane.operations(self.project.id):
                before = self.stages.get(operation["id"], 0)
                assert stage(operation) >= before, (ORDER[before], operation)
                self.stages[operation["id"]] = stage(operation)

    @invariant()
    def operations_start_after_the_one_before_them(self) -> None:
        if hasattr(self, "project"):
            rows = {row.id: row for row in self.plane.rows(Operation)}
            for row in rows.values():
                if row.after_id is not None:
                    assert row.starts_at >= rows[row.after_id].settles_at

    @invariant()
    def some_work_is_ready_or_planned(self) -> None:
        if hasattr(self, "project") and self.plane.run(work.unfinished):
            assert self.plane.ready() or self.plane.next_start()


TestSettledStates = SettledStates.TestCase
TestSettledStates.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)


def test_compute_whose_suspension_failed_does_not_run_on_the_branch_that_it_left() -> None:
    with DrivenControlPlane(durations=Durations(default=0)) as plane:
        project = DrivenProject(plane)
        snapshot = plane.request("POST", f"{project.main_path}/snapshot")["snapshot"]
        to_itself = {
            "source_branch_id": project.main,
            "source_timestamp": "2026-01-01T00:00:00Z",
            "preserve_under_name": "kept",
        }
        plane.request("POST", f"{project.main_path}/restore", to_itself)
        plane.run(operations.fail_next, "suspend_compute", Failure(), 1)
        path = f"{project.path}/snapshots/{snapshot['id']}/restore"
        plane.request("POST", path, {"finalize_restore": True})
        plane.work_off()
        [compute] = plane.rows(Endpoint, "WHERE deleted_at IS NULL")
        assert (compute.state, compute.running_on) == ("idle", None)
        assert compute.branch_id != project.main
