"""Branches restored from snapshots, previewed or put in the place of another."""

import pytest

from neonctl_async.local import BackgroundIntervals, LocalControlPlane, ManualClock
from tests.local.client import Client
from tests.local.restores import Restores, actions

DAY = 86400.0


@pytest.fixture
async def restores(api: Client, clock: ManualClock) -> Restores:
    """What every test begins with."""
    restores = Restores(api, clock)
    await restores.begin()
    return restores


async def test_a_snapshot_is_restored_to_a_new_branch(
    restores: Restores, clock: ManualClock
) -> None:
    restored = await restores.restore(name="preview")
    assert actions(restored) == ["create_branch"]
    branch = restored["branch"]
    assert (branch["restored_from"], branch["restored_as"]) == (restores.snapshot, restores.main)
    assert (branch["restore_status"], branch["name"]) == ("restored", "preview")
    assert (branch["current_state"], branch["pending_state"]) == ("init", "ready")
    assert "parent_id" not in branch
    clock.advance(1)
    assert (await restores.branches())["preview"]["current_state"] == "ready"
    assert (await restores.branches())["main"]["id"] == restores.main


async def test_a_snapshot_keeps_the_roles_and_databases_that_its_branch_had(
    restores: Restores, api: Client
) -> None:
    main = f"{restores.path}/branches/{restores.main}"
    password = (await api.get(f"{main}/roles/neondb_owner/reveal_password"))["password"]
    await api.done("POST", f"{main}/roles", {"role": {"name": "later"}})
    await api.done("POST", f"{main}/roles/neondb_owner/reset_password")
    await api.done("DELETE", f"{main}/databases/neondb")
    restored = f"{restores.path}/branches/{(await restores.restore())['branch']['id']}"
    assert [one["name"] for one in (await api.get(f"{restored}/roles"))["roles"]] == [
        "neondb_owner"
    ]
    (database,) = (await api.get(f"{restored}/databases"))["databases"]
    assert (database["name"], database["owner_name"]) == ("neondb", "neondb_owner")
    revealed = await api.get(f"{restored}/roles/neondb_owner/reveal_password")
    assert revealed["password"] == password


async def test_the_name_of_a_restored_branch_may_be_in_the_query_as_of_old(
    restores: Restores, api: Client
) -> None:
    path = f"{restores.path}/snapshots/{restores.snapshot}/restore?name=old-way"
    assert (await api.done("POST", path))["branch"]["name"] == "old-way"
    assert (await api.send("POST", path)).status == 409
    long = await api.send("POST", path.replace("old-way", "n" * 257))
    assert (long.status, ": name:" in long.message) == (400, True)


async def test_a_finalized_branch_takes_the_place_of_its_target(
    restores: Restores, api: Client, clock: ManualClock
) -> None:
    await api.done(
        "PATCH", f"{restores.path}/branches/{restores.main}", {"branch": {"protected": True}}
    )
    branch_id = (await restores.restore(name="preview"))["branch"]["id"]
    clock.advance(9)
    path = f"{restores.path}/branches/{branch_id}"
    finalized = await api.done("POST", f"{path}/finalize_restore")
    assert actions(finalized) == ["suspend_compute", "start_compute"]
    assert [one["branch_id"] for one in finalized["operations"]] == [restores.main, branch_id]
    branches = await restores.branches()
    assert set(branches) == {"main", "main (old)"}
    assert (
        branches["main"].items()
        >= {
            "id": branch_id,
            "default": True,
            "protected": True,
            "restore_status": "finalized",
        }.items()
    )
    assert (branches["main (old)"]["id"], branches["main (old)"]["default"]) == (
        restores.main,
        False,
    )
    clock.advance(9)
    (endpoint,) = (await api.get(f"{path}/endpoints"))["endpoints"]
    assert (endpoint["id"], endpoint["current_state"]) == (restores.endpoint, "active")
    assert (await api.send("POST", f"{path}/finalize_restore")).status == 422


async def test_a_restore_is_finalized_at_once_where_asked_for(restores: Restores) -> None:
    restored = await restores.restore(finalize_restore=True, target_branch_id=restores.main)
    assert actions(restored) == ["create_branch", "suspend_compute", "start_compute"]
    assert (restored["branch"]["name"], restored["branch"]["restore_status"]) == (
        "main",
        "finalized",
    )
    (endpoint,) = restored["endpoints"]
    assert (endpoint["id"], endpoint["branch_id"]) == (restores.endpoint, restored["branch"]["id"])


async def test_a_finalized_branch_stays_the_default_and_protected(
    restores: Restores, api: Client, clock: ManualClock
) -> None:
    branch_id = (await restores.restore(name="preview"))["branch"]["id"]
    clock.advance(9)
    path = f"{restores.path}/branches/{branch_id}"
    await api.done("POST", f"{path}/set_as_default")
    await api.done("PATCH", path, {"branch": {"protected": True}})
    main = f"{restores.path}/branches/{restores.main}"
    await api.done("PATCH", main, {"branch": {"expires_at": "2026-02-01T00:00:00Z"}})
    await api.done("POST", f"{path}/finalize_restore")
    kept = (await restores.branches())["main"]
    assert (kept["id"], kept["default"], kept["protected"]) == (branch_id, True, True)
    assert "expires_at" not in kept


async def test_a_branch_that_was_replaced_can_be_deleted(
    restores: Restores, api: Client, clock: ManualClock
) -> None:
    restored = (await restores.restore(finalize_restore=True))["branch"]["id"]
    clock.advance(9)
    assert (await api.send("DELETE", f"{restores.path}/branches/{restored}")).status == 422
    await api.done("DELETE", f"{restores.path}/branches/{restores.main}")
    assert set(await restores.branches()) == {"main"}


async def test_a_deleted_branch_without_a_parent_is_no_root(
    restores: Restores, api: Client
) -> None:
    root = (await restores.restore(name="preview"))["branch"]["id"]
    await api.done("DELETE", f"{restores.path}/branches/{root}")
    child = (await api.branch(restores.path.rpartition("/")[2]))["branch"]["id"]
    await api.done("POST", f"{restores.path}/branches/{child}/set_as_default")
    reply = await api.send("DELETE", f"{restores.path}/branches/{restores.main}")
    assert (reply.status, "root branch" in reply.message) == (422, True)


async def test_a_name_for_the_branch_that_is_replaced_is_taken_or_found(
    restores: Restores, api: Client, clock: ManualClock
) -> None:
    await api.branch(restores.path.rpartition("/")[2], name="main (old)")
    first = (await restores.restore(finalize_restore=True))["branch"]["id"]
    assert set(await restores.branches()) == {"main", "main (old)", f"main (old {restores.main})"}
    second = (await restores.restore(target_branch_id=first))["branch"]["id"]
    clock.advance(9)
    path = f"{restores.path}/branches/{second}/finalize_restore"
    taken = await api.send("POST", path, {"name": "main (old)"})
    assert (taken.status, "main (old)" in taken.message) == (409, True)
    await api.done("POST", path, {"name": "replaced"})
    assert (await restores.branches())["replaced"]["id"] == first


async def test_an_idle_compute_is_moved_without_work(
    restores: Restores, api: Client, clock: ManualClock
) -> None:
    await api.done("POST", f"{restores.path}/endpoints/{restores.endpoint}/suspend")
    clock.advance(9)
    restored = await restores.restore(finalize_restore=True)
    assert actions(restored) == ["create_branch"]
    assert restored["endpoints"][0]["current_state"] == "idle"


async def test_two_read_write_computes_do_not_come_together(
    restores: Restores, api: Client, clock: ManualClock
) -> None:
    branch_id = (await restores.restore(name="preview"))["branch"]["id"]
    body = {"endpoint": {"branch_id": branch_id, "type": "read_write"}}
    await api.done("POST", f"{restores.path}/endpoints", body)
    clock.advance(9)
    reply = await api.send("POST", f"{restores.path}/branches/{branch_id}/finalize_restore")
    assert (reply.status, "read_write" in reply.message) == (409, True)
    assert set(await restores.branches()) == {"main", "preview"}


async def test_a_snapshot_outlives_its_branch(restores: Restores, api: Client) -> None:
    child = await restores.child()
    await api.done("DELETE", f"{restores.path}/branches/{child}")
    restored = await restores.restore()
    assert restored["branch"]["restored_as"] == child


async def test_a_branch_that_is_to_be_replaced_is_recovered_first(
    restores: Restores, api: Client, clock: ManualClock
) -> None:
    child = f"{restores.path}/branches/{await restores.child()}"
    restored = await restores.restore(name="preview")
    clock.advance(9)
    path = f"{restores.path}/branches/{restored['branch']['id']}/finalize_restore"
    await api.done("DELETE", child)
    reply = await api.send("POST", path)
    assert (reply.status, restored["branch"]["restored_as"] in reply.message) == (409, True)
    assert "recover it first" in reply.message
    await api.done("POST", f"{child}/recover")
    await api.done("POST", path)
    await api.send("DELETE", f"{child}?hard_delete=true")
    at_once = f"{restores.path}/snapshots/{restores.snapshot}/restore"
    reply = await api.send("POST", at_once, {"finalize_restore": True})
    assert (reply.status, "permanently deleted" in reply.message) == (409, True)


async def test_a_finalized_branch_takes_over_what_was_set_up_for_its_target(
    restores: Restores, api: Client, clock: ManualClock
) -> None:
    child = f"{restores.path}/branches/{await restores.child()}"
    schedule = {"schedule": [{"frequency": "daily", "hour": 3}]}
    await api.done("PUT", f"{child}/backup_schedule", schedule)
    await api.done("PATCH", child, {"branch": {"expires_at": "2026-01-01T01:00:00Z"}})
    keys = {"jwks_url": "https://auth.example.com/jwks.json", "provider_name": "Clerk"}
    await api.done("POST", f"{restores.path}/jwks", keys | {"branch_id": child.rpartition("/")[2]})
    branch = (await restores.restore(finalize_restore=True))["branch"]
    assert branch["expires_at"] == "2026-01-01T01:00:00Z"
    assert await api.get(f"{restores.path}/branches/{branch['id']}/backup_schedule") == schedule
    (jwks,) = (await api.get(f"{restores.path}/jwks"))["jwks"]
    assert jwks["branch_id"] == branch["id"]
    assert await api.get(f"{child}/backup_schedule") == {"schedule": []}
    clock.advance(3600)
    assert set(await restores.branches()) == {"main", "child (old)"}


async def test_the_branch_that_is_replaced_may_have_the_name_that_becomes_free(
    restores: Restores, api: Client, clock: ManualClock
) -> None:
    branch_id = (await restores.restore(name="preview"))["branch"]["id"]
    clock.advance(9)
    path = f"{restores.path}/branches/{branch_id}/finalize_restore"
    assert (await api.send("POST", path, {"name": "main"})).status == 409
    await api.done("POST", path, {"name": "preview"})
    branches = await restores.branches()
    assert (branches["main"]["id"], branches["preview"]["id"]) == (branch_id, restores.main)
    branch_id = (await restores.restore(name="preview (old)"))["branch"]["id"]
    clock.advance(9)
    await api.done("POST", f"{restores.path}/branches/{branch_id}/finalize_restore")
    assert set(await restores.branches()) == {"main", "preview", "preview (old)"}


async def test_a_long_name_of_the_branch_that_is_replaced_is_shortened(
    restores: Restores, api: Client
) -> None:
    long = "m" * 256
    main = f"{restores.path}/branches/{restores.main}"
    await api.done("PATCH", main, {"branch": {"name": long}})
    assert (await restores.restore(finalize_restore=True))["branch"]["name"] == long
    assert set(await restores.branches()) == {long, "m" * 250 + " (old)"}


async def test_a_branch_is_finalized_once_it_is_restored(
    restores: Restores, api: Client, clock: ManualClock
) -> None:
    branch_id = (await restores.restore(name="preview"))["branch"]["id"]
    path = f"{restores.path}/branches/{branch_id}/finalize_restore"
    reply = await api.send("POST", path)
    assert (reply.status, "is being restored" in reply.message) == (409, True)
    assert set(await restores.branches()) == {"main", "preview"}
    clock.advance(1)
    await api.done("POST", path)


async def test_a_snapshot_that_was_not_taken_is_not_restored(
    restores: Restores, api: Client
) -> None:
    await api.control_plane.fail_next("create_branch")
    snapshot = await restores.take()
    reply = await api.send("POST", f"{restores.path}/snapshots/{snapshot}/restore")
    assert (reply.status, "was not taken" in reply.message) == (409, True)


async def test_a_restore_that_fails_replaces_nothing(
    restores: Restores, api: Client, clock: ManualClock
) -> None:
    await api.control_plane.fail_next("create_branch")
    restored = await restores.restore(name="failed", finalize_restore=True)
    clock.advance(9)
    branches = await restores.branches()
    assert (branches["failed"]["current_state"], branches["main"]["default"]) == ("init", True)
    (endpoint,) = (await api.get(f"{restores.path}/endpoints"))["endpoints"]
    assert (endpoint["branch_id"], endpoint["current_state"]) == (restores.main, "active")
    path = f"{restores.path}/branches/{restored['branch']['id']}/finalize_restore"
    reply = await api.send("POST", path)
    assert (reply.status, "was not restored" in reply.message) == (409, True)


@pytest.mark.parametrize("named", ["snapshot", "target_branch_id"])
async def test_a_restore_of_or_into_what_is_not_there_is_404(
    restores: Restores, api: Client, named: str
) -> None:
    snapshot = "none" if named == "snapshot" else restores.snapshot
    body = {} if named == "snapshot" else {"target_branch_id": "none"}
    reply = await api.send("POST", f"{restores.path}/snapshots/{snapshot}/restore", body)
    assert (reply.status, "'none'" in reply.message) == (404, True)


async def test_a_branch_of_another_origin_is_not_finalized(restores: Restores, api: Client) -> None:
    path = f"{restores.path}/branches/{restores.main}/finalize_restore"
    reply = await api.send("POST", path)
    assert (reply.status, "snapshot" in reply.message) == (422, True)


async def test_restoring_waits_for_what_runs_on_the_branches(clock: ManualClock) -> None:
    async with (
        LocalControlPlane(clock=clock, lock="branch") as control_plane,
        Client(control_plane) as api,
    ):
        restores = Restores(api, clock)
        await restores.begin()
        branch_id = (await restores.restore())["branch"]["id"]
        path = f"{restores.path}/branches/{branch_id}/finalize_restore"
        assert (await api.send("POST", path)).status == 423
        clock.advance(9)
        await api.done("POST", path)
        again = await api.send("POST", f"{restores.path}/snapshots/{restores.snapshot}/restore")
        assert again.status == 423


async def test_restoring_and_finalizing_wait_for_what_runs_on_the_target(
    clock: ManualClock,
) -> None:
    async with (
        LocalControlPlane(clock=clock, lock="branch") as control_plane,
        Client(control_plane) as api,
    ):
        restores = Restores(api, clock)
        await restores.begin()
        branch_id = (await restores.restore())["branch"]["id"]
        clock.advance(9)
        child = await api.branch(restores.path.rpartition("/")[2], compute=True)
        clock.advance(1)
        path = f"{restores.path}/snapshots/{restores.snapshot}/restore"
        body = {"target_branch_id": child["branch"]["id"]}
        assert (await api.send("POST", path, body)).status == 423
        clock.advance(9)
        role = {"role": {"name": "alex"}}
        await api.done("POST", f"{restores.path}/branches/{restores.main}/roles", role)
        path = f"{restores.path}/branches/{branch_id}/finalize_restore"
        assert (await api.send("POST", path)).status == 423
        clock.advance(9)
        await api.done("POST", path)


async def test_a_branch_that_was_archived_meanwhile_is_finalized_and_unarchived(
    restores: Restores, api: Client, clock: ManualClock
) -> None:
    branch_id = (await restores.restore(name="preview"))["branch"]["id"]
    clock.advance(15 * DAY)
    assert (await restores.branches())["preview"]["current_state"] == "archived"
    path = f"{restores.path}/branches/{branch_id}/finalize_restore"
    assert actions(await api.done("POST", path)) == ["timeline_unarchive"]
    clock.advance(9)
    assert (await restores.branches())["main"]["current_state"] == "ready"


async def test_a_finalized_branch_is_watched_as_its_target_was(clock: ManualClock) -> None:
    intervals = BackgroundIntervals(detach_after=None, check_availability_every=DAY)
    async with (
        LocalControlPlane(clock=clock, intervals=intervals) as control_plane,
        Client(control_plane) as api,
    ):
        restores = Restores(api, clock)
        await restores.begin()
        await api.done("POST", f"{restores.path}/endpoints/{restores.endpoint}/suspend")
        branch_id = (await restores.restore(finalize_restore=True))["branch"]["id"]
        clock.advance(20 * DAY)
        found = await api.operations(restores.path.rpartition("/")[2])
    by_themselves = {
        (op["action"], op["branch_id"]) for op in found if op["created_at"] > "2026-01-02"
    }
    assert by_themselves == {
        ("check_availability", branch_id),
        ("timeline_archive", restores.main),
    }
