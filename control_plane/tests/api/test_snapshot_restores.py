"""Restores of snapshots to new branches, and finalizing them."""

import pytest

from control_plane.tests.client import Client, actions_of
from control_plane.tests.restores import RestoreScenario
from neonctl_local import BackgroundIntervals, ManualClock

DAY = 86400.0


@pytest.fixture
async def scenario(api: Client, clock: ManualClock) -> RestoreScenario:
    """Create a project with a snapshot."""
    scenario = RestoreScenario(api, clock)
    await scenario.set_up()
    return scenario


@pytest.mark.fact("snapshots-6")
async def test_snapshot_is_restored_to_a_new_branch(
    scenario: RestoreScenario, clock: ManualClock
) -> None:
    restored = await scenario.restore(name="preview")
    assert actions_of(restored) == ["create_branch"]
    branch = restored["branch"]
    assert (branch["restored_from"], branch["restored_as"]) == (scenario.snapshot, scenario.main)
    assert (branch["restore_status"], branch["name"]) == ("restored", "preview")
    assert (branch["current_state"], branch["pending_state"]) == ("init", "ready")
    assert "parent_id" not in branch
    clock.advance(1)
    assert (await scenario.branches())["preview"]["current_state"] == "ready"
    assert (await scenario.branches())["main"]["id"] == scenario.main


async def test_restored_branch_has_the_roles_and_databases_of_the_snapshot(
    scenario: RestoreScenario, api: Client
) -> None:
    main = scenario.main_path
    password = (await api.get(f"{main}/roles/neondb_owner/reveal_password"))["password"]
    await api.request("POST", f"{main}/roles", {"role": {"name": "later"}})
    await api.request("POST", f"{main}/roles/neondb_owner/reset_password")
    await api.request("DELETE", f"{main}/databases/neondb")
    restored = f"{scenario.path}/branches/{(await scenario.restore())['branch']['id']}"
    (role,) = (await api.get(f"{restored}/roles"))["roles"]
    assert role["name"] == "neondb_owner"
    (database,) = (await api.get(f"{restored}/databases"))["databases"]
    assert (database["name"], database["owner_name"]) == ("neondb", "neondb_owner")
    revealed = await api.get(f"{restored}/roles/neondb_owner/reveal_password")
    assert revealed["password"] == password


async def test_name_of_the_restored_branch_can_be_a_query_parameter(
    scenario: RestoreScenario, api: Client
) -> None:
    path = f"{scenario.path}/snapshots/{scenario.snapshot}/restore?name=old-way"
    assert (await api.request("POST", path))["branch"]["name"] == "old-way"
    assert (await api.send("POST", path)).status == 409
    for invalid in ("n" * 257, "", "a%0Ab"):
        refused = path.replace("old-way", invalid)
        await api.expect_error(400, ": name:", "POST", refused)
        await api.expect_error(400, ": name:", "POST", refused, {"name": "new-way"})


@pytest.mark.fact("snapshots-13")
async def test_finalized_branch_replaces_its_target(
    scenario: RestoreScenario, api: Client, clock: ManualClock
) -> None:
    await api.request("PATCH", scenario.main_path, {"branch": {"protected": True}})
    branch_id = await scenario.finished_restore(name="preview")
    finalized = await api.request("POST", scenario.finalize_path(branch_id))
    assert actions_of(finalized) == ["suspend_compute", "start_compute"]
    changed = [operation["branch_id"] for operation in finalized["operations"]]
    assert changed == [scenario.main, branch_id]
    branches = await scenario.branches()
    assert set(branches) == {"main", "main (old)"}
    expected = {"id": branch_id, "default": True, "protected": True, "restore_status": "finalized"}
    assert branches["main"].items() >= expected.items()
    old = branches["main (old)"]
    assert (old["id"], old["default"]) == (scenario.main, False)
    clock.advance(9)
    (endpoint,) = (await api.get(f"{scenario.path}/branches/{branch_id}/endpoints"))["endpoints"]
    assert (endpoint["id"], endpoint["current_state"]) == (scenario.endpoint, "active")
    assert (await api.send("POST", scenario.finalize_path(branch_id))).status == 422


async def test_restore_can_finalize_in_the_same_request(scenario: RestoreScenario) -> None:
    restored = await scenario.restore(finalize_restore=True, target_branch_id=scenario.main)
    assert actions_of(restored) == ["create_branch", "suspend_compute", "start_compute"]
    branch, (endpoint,) = restored["branch"], restored["endpoints"]
    assert (branch["name"], branch["restore_status"]) == ("main", "finalized")
    assert (endpoint["id"], endpoint["branch_id"]) == (scenario.endpoint, branch["id"])


async def test_finalized_branch_stays_default_and_protected(
    scenario: RestoreScenario, api: Client
) -> None:
    branch_id = await scenario.finished_restore(name="preview")
    path = f"{scenario.path}/branches/{branch_id}"
    await api.request("POST", f"{path}/set_as_default")
    await api.request("PATCH", path, {"branch": {"protected": True}})
    await api.request("POST", f"{path}/finalize_restore")
    finalized = (await scenario.branches())["main"]
    assert finalized.items() >= {"id": branch_id, "default": True, "protected": True}.items()


async def test_replaced_branch_can_be_deleted(
    scenario: RestoreScenario, api: Client, clock: ManualClock
) -> None:
    restored = (await scenario.restore(finalize_restore=True))["branch"]["id"]
    clock.advance(9)
    assert (await api.send("DELETE", f"{scenario.path}/branches/{restored}")).status == 422
    await api.request("DELETE", scenario.main_path)
    assert set(await scenario.branches()) == {"main"}


async def test_only_remaining_root_branch_cannot_be_deleted(
    scenario: RestoreScenario, api: Client
) -> None:
    root = (await scenario.restore(name="preview"))["branch"]["id"]
    await api.request("DELETE", f"{scenario.path}/branches/{root}")
    child = (await api.branch(scenario.project_id))["branch"]["id"]
    await api.request("POST", f"{scenario.path}/branches/{child}/set_as_default")
    await api.expect_error(422, "root branch", "DELETE", scenario.main_path)


async def test_replaced_branch_gets_the_requested_name_or_a_free_one(
    scenario: RestoreScenario, api: Client, clock: ManualClock
) -> None:
    await api.branch(scenario.project_id, name="main (old)")
    first = (await scenario.restore(finalize_restore=True))["branch"]["id"]
    assert set(await scenario.branches()) == {"main", "main (old)", f"main (old {scenario.main})"}
    second = (await scenario.restore(target_branch_id=first))["branch"]["id"]
    clock.advance(9)
    path = f"{scenario.path}/branches/{second}/finalize_restore"
    await api.expect_error(409, "main (old)", "POST", path, {"name": "main (old)"})
    await api.request("POST", path, {"name": "replaced"})
    assert (await scenario.branches())["replaced"]["id"] == first


async def test_idle_compute_is_moved_without_operations(
    scenario: RestoreScenario, api: Client, clock: ManualClock
) -> None:
    await api.request("POST", f"{scenario.path}/endpoints/{scenario.endpoint}/suspend")
    clock.advance(9)
    restored = await scenario.restore(finalize_restore=True)
    assert actions_of(restored) == ["create_branch"]
    assert restored["endpoints"][0]["current_state"] == "idle"


async def test_finalizing_with_two_read_write_computes_is_409(
    scenario: RestoreScenario, api: Client, clock: ManualClock
) -> None:
    branch_id = (await scenario.restore(name="preview"))["branch"]["id"]
    body = {"endpoint": {"branch_id": branch_id, "type": "read_write"}}
    await api.request("POST", f"{scenario.path}/endpoints", body)
    clock.advance(9)
    await api.expect_error(409, "read_write", "POST", scenario.finalize_path(branch_id))
    assert set(await scenario.branches()) == {"main", "preview"}


async def test_snapshot_of_a_deleted_branch_can_be_restored(
    scenario: RestoreScenario, api: Client
) -> None:
    root = await scenario.add_root()
    await api.request("DELETE", f"{scenario.path}/branches/{root}")
    restored = await scenario.restore()
    assert restored["branch"]["restored_as"] == root


async def test_finalizing_with_a_deleted_target_is_409(
    scenario: RestoreScenario, api: Client, clock: ManualClock
) -> None:
    root = f"{scenario.path}/branches/{await scenario.add_root()}"
    restored = await scenario.restore(name="preview")
    clock.advance(9)
    path = scenario.finalize_path(restored["branch"]["id"])
    await api.request("DELETE", root)
    reply = await api.send("POST", path)
    assert (reply.status, restored["branch"]["restored_as"] in reply.message) == (409, True)
    assert "recover it first" in reply.message
    await api.request("POST", f"{root}/recover")
    await api.request("POST", path)
    await api.send("DELETE", f"{root}?hard_delete=true")
    at_once = scenario.restore_path(scenario.snapshot)
    await api.expect_error(409, "permanently deleted", "POST", at_once, {"finalize_restore": True})


@pytest.mark.fact("snapshots-11")
async def test_finalized_branch_gets_the_schedule_and_jwks_of_its_target(
    scenario: RestoreScenario, api: Client
) -> None:
    main = scenario.main_path
    schedule = {"schedule": [{"frequency": "daily", "hour": 3}]}
    await api.request("PUT", f"{main}/backup_schedule", schedule)
    provider = {"jwks_url": "https://auth.example.com/jwks.json", "provider_name": "Clerk"}
    branch_id = main.rpartition("/")[2]
    await api.request("POST", f"{scenario.path}/jwks", provider | {"branch_id": branch_id})
    branch = (await scenario.restore(finalize_restore=True))["branch"]
    assert await api.get(f"{scenario.path}/branches/{branch['id']}/backup_schedule") == schedule
    (jwks,) = (await api.get(f"{scenario.path}/jwks"))["jwks"]
    assert jwks["branch_id"] == branch["id"]
    assert await api.get(f"{main}/backup_schedule") == {"schedule": []}


@pytest.mark.fact("snapshots-7")
async def test_finalized_branch_gets_the_expiry_or_the_protection_of_its_target(
    scenario: RestoreScenario, api: Client
) -> None:
    root = f"{scenario.path}/branches/{await scenario.add_root()}"
    await api.request("PATCH", root, {"branch": {"expires_at": "2026-01-01T01:00:00Z"}})
    branch = (await scenario.restore(finalize_restore=True))["branch"]
    assert branch["expires_at"] == "2026-01-01T01:00:00Z"
    replaced = (await api.get(root))["branch"]
    assert not replaced.keys() & {"expires_at", "ttl_interval_seconds"}
    path = f"{scenario.path}/branches/{branch['id']}"
    await api.request("PATCH", path, {"branch": {"expires_at": None, "protected": True}})
    body = {"finalize_restore": True, "target_branch_id": branch["id"]}
    restored = (await scenario.restore(**body))["branch"]
    assert restored["protected"]
    assert not (await api.get(path))["branch"]["protected"]


async def test_replaced_branch_can_get_the_previous_name_of_the_restored_branch(
    scenario: RestoreScenario, api: Client
) -> None:
    branch_id = await scenario.finished_restore(name="preview")
    path = scenario.finalize_path(branch_id)
    assert (await api.send("POST", path, {"name": "main"})).status == 409
    await api.request("POST", path, {"name": "preview"})
    branches = await scenario.branches()
    assert (branches["main"]["id"], branches["preview"]["id"]) == (branch_id, scenario.main)
    branch_id = await scenario.finished_restore(name="preview (old)")
    await api.request("POST", scenario.finalize_path(branch_id))
    assert set(await scenario.branches()) == {"main", "preview", "preview (old)"}


async def test_long_name_of_the_replaced_branch_is_shortened(
    scenario: RestoreScenario, api: Client
) -> None:
    long = "m" * 256
    await api.request("PATCH", scenario.main_path, {"branch": {"name": long}})
    assert (await scenario.restore(finalize_restore=True))["branch"]["name"] == long
    assert set(await scenario.branches()) == {long, "m" * 250 + " (old)"}


async def test_finalizing_during_the_restore_is_409(
    scenario: RestoreScenario, api: Client, clock: ManualClock
) -> None:
    branch_id = (await scenario.restore(name="preview"))["branch"]["id"]
    path = scenario.finalize_path(branch_id)
    await api.expect_error(409, "is being restored", "POST", path)
    assert set(await scenario.branches()) == {"main", "preview"}
    clock.advance(1)
    await api.request("POST", path)


async def test_restoring_a_snapshot_that_failed_is_409(
    scenario: RestoreScenario, api: Client
) -> None:
    await api.control_plane.fail_next("create_branch")
    snapshot = await scenario.take_snapshot(scenario.main)
    await api.expect_error(409, "was not taken", "POST", scenario.restore_path(snapshot))


async def test_failed_restore_replaces_nothing(
    scenario: RestoreScenario, api: Client, clock: ManualClock
) -> None:
    await api.control_plane.fail_next("create_branch")
    restored = await scenario.restore(name="failed", finalize_restore=True)
    clock.advance(9)
    branches = await scenario.branches()
    assert (branches["failed"]["current_state"], branches["main"]["default"]) == ("init", True)
    (endpoint,) = (await api.get(f"{scenario.path}/endpoints"))["endpoints"]
    assert (endpoint["branch_id"], endpoint["current_state"]) == (scenario.main, "active")
    path = scenario.finalize_path(restored["branch"]["id"])
    await api.expect_error(409, "was not restored", "POST", path)


@pytest.mark.parametrize("unknown", ["snapshot", "target_branch_id"])
async def test_restore_with_an_unknown_snapshot_or_target_is_404(
    scenario: RestoreScenario, api: Client, unknown: str
) -> None:
    snapshot = "none" if unknown == "snapshot" else scenario.snapshot
    body = {} if unknown == "snapshot" else {"target_branch_id": "none"}
    await api.expect_error(404, "not found", "POST", scenario.restore_path(snapshot), body)


async def test_branch_that_was_not_restored_cannot_be_finalized(
    scenario: RestoreScenario, api: Client
) -> None:
    await api.expect_error(422, "snapshot", "POST", scenario.finalize_path(scenario.main))


@pytest.mark.control_plane(lock="branch")
async def test_restoring_and_finalizing_are_423_while_the_branch_is_locked(
    scenario: RestoreScenario, api: Client, clock: ManualClock
) -> None:
    branch_id = (await scenario.restore())["branch"]["id"]
    path = scenario.finalize_path(branch_id)
    assert (await api.send("POST", path)).status == 423
    clock.advance(9)
    await api.request("POST", path)
    again = await api.send("POST", scenario.restore_path(scenario.snapshot))
    assert again.status == 423


@pytest.mark.control_plane(lock="branch")
async def test_restoring_and_finalizing_are_423_while_the_target_is_locked(
    scenario: RestoreScenario, api: Client, clock: ManualClock
) -> None:
    branch_id = await scenario.finished_restore()
    child = await api.branch(scenario.project_id, compute=True)
    clock.advance(1)
    path = scenario.restore_path(scenario.snapshot)
    body = {"target_branch_id": child["branch"]["id"]}
    assert (await api.send("POST", path, body)).status == 423
    clock.advance(9)
    role = {"role": {"name": "alex"}}
    await api.request("POST", f"{scenario.main_path}/roles", role)
    path = scenario.finalize_path(branch_id)
    assert (await api.send("POST", path)).status == 423
    clock.advance(9)
    await api.request("POST", path)


async def test_finalizing_an_archived_branch_unarchives_it(
    scenario: RestoreScenario, api: Client, clock: ManualClock
) -> None:
    branch_id = (await scenario.restore(name="preview"))["branch"]["id"]
    clock.advance(15 * DAY)
    assert (await scenario.branches())["preview"]["current_state"] == "archived"
    path = scenario.finalize_path(branch_id)
    assert actions_of(await api.request("POST", path)) == ["timeline_unarchive"]
    clock.advance(9)
    assert (await scenario.branches())["main"]["current_state"] == "ready"


@pytest.mark.control_plane(
    intervals=BackgroundIntervals(detach_after=None, check_availability_every=DAY)
)
async def test_finalized_branch_is_checked_and_its_target_is_archived(
    scenario: RestoreScenario, api: Client, clock: ManualClock
) -> None:
    await api.request("POST", f"{scenario.path}/endpoints/{scenario.endpoint}/suspend")
    branch_id = (await scenario.restore(finalize_restore=True))["branch"]["id"]
    clock.advance(20 * DAY)
    found = await api.operations(scenario.project_id)
    later = [op for op in found if op["created_at"] > "2026-01-02"]
    assert {(op["action"], op["branch_id"]) for op in later} == {
        ("check_availability", branch_id),
        ("timeline_archive", scenario.main),
    }


@pytest.mark.fact("snapshots-12", "snapshots-13")
async def test_snapshot_belongs_to_the_replaced_branch_after_a_finalized_restore(
    scenario: RestoreScenario, api: Client, clock: ManualClock
) -> None:
    uri = f"{scenario.path}/connection_uri?database_name=neondb&role_name=neondb_owner"
    before = await api.get(uri)
    first = (await scenario.restore(finalize_restore=True))["branch"]["id"]
    assert await api.get(uri) == before
    assert first != scenario.main
    (snapshot,) = (await api.get(f"{scenario.path}/snapshots"))["snapshots"]
    assert snapshot["source_branch_id"] == scenario.main
    clock.advance(9)
    assert (await scenario.restore())["branch"]["restored_as"] == scenario.main
