"""Anonymized branches, their masking rules, and the runs that apply them."""

from typing import Any

import pytest

from control_plane.tests.client import Client, actions_of, branch_path_of
from neonctl_local import Durations, ManualClock

RULE = {
    "database_name": "neondb",
    "schema_name": "public",
    "table_name": "users",
    "column_name": "email",
    "masking_function": "anon.fake_email()",
}
WITH_COMPUTE = {"endpoints": [{"type": "read_write"}]}


# Any: as Client.get, also below.
async def anonymized(api: Client, project_id: str, **body: object) -> Any:
    """Create an anonymized branch. Return the response."""
    return await api.request("POST", f"/projects/{project_id}/branch_anonymized", body)


async def states(api: Client, path: str, clock: ManualClock, seconds: int) -> list[str]:
    """Return the state now, and after each of the next seconds."""
    found = [(await api.get(f"{path}/anonymized_status"))["state"]]
    for _ in range(seconds):
        clock.advance(1)
        found.append((await api.get(f"{path}/anonymized_status"))["state"])
    return found


async def test_anonymized_branch_is_created_and_initialized(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    spec = {"branch": {"name": "masked"}, "endpoints": [{"type": "read_write"}]}
    created = await anonymized(
        api, project_id, branch_create=spec, masking_rules=[RULE], annotation_value={"pr": "17"}
    )
    assert actions_of(created) == ["create_branch", "start_compute"]
    assert created["branch"]["name"] == "masked"
    assert len(created["connection_uris"]) == 1
    path = branch_path_of(created)
    assert (await api.get(path))["annotation"]["value"] == {"pr": "17"}
    assert await states(api, path, clock, 2) == ["created", "initialized", "initialized"]
    status = await api.get(f"{path}/anonymized_status")
    assert status["branch_id"] == created["branch"]["id"]
    assert status["created_at"] == "2026-01-01T00:00:00Z"
    assert status["updated_at"] == "2026-01-01T00:00:01Z"
    assert "last_run" not in status


@pytest.mark.fact("anonymized-5")
async def test_masking_rules_are_stored_and_replaced(api: Client, project_id: str) -> None:
    path = branch_path_of(await anonymized(api, project_id, masking_rules=[RULE]))
    assert await api.get(f"{path}/masking_rules") == {"masking_rules": [RULE]}
    column = {name: value for name, value in RULE.items() if name != "masking_function"}
    rules = [column | {"column_name": "name", "masking_value": "nobody"}]
    body = {"masking_rules": rules}
    assert await api.request("PATCH", f"{path}/masking_rules", body) == body
    assert await api.get(f"{path}/masking_rules") == body


async def test_error_for_an_invalid_rule_names_the_field(api: Client, project_id: str) -> None:
    path = branch_path_of(await anonymized(api, project_id))
    rule = {name: value for name, value in RULE.items() if name != "schema_name"}
    body = {"masking_rules": [rule]}
    await api.expect_error(
        400, "masking_rules[0].schema_name", "PATCH", f"{path}/masking_rules", body
    )
    assert await api.get(f"{path}/masking_rules") == {"masking_rules": []}


async def test_anonymization_lasts_as_long_as_its_operation(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    created = await anonymized(api, project_id, masking_rules=[RULE, RULE])
    path = branch_path_of(created)
    clock.advance(1)
    started = await api.request("POST", f"{path}/anonymize")
    assert (started["state"], "completed_at" in started["last_run"]) == ("anonymizing", False)
    assert await states(api, path, clock, 1) == ["anonymizing", "anonymized"]
    run = (await api.get(f"{path}/anonymized_status"))["last_run"]
    me = await api.get("/users/me")
    assert run == {
        "started_at": "2026-01-01T00:00:01Z",
        "completed_at": "2026-01-01T00:00:02Z",
        "triggered_by": me["id"],
        "triggered_by_username": me["name"],
        "masked_columns": 1,
    }
    assert (await api.actions(project_id))[-1] == "apply_config"


@pytest.mark.control_plane(durations=Durations(default=1, by_action={"apply_config": 3}))
async def test_anonymization_can_start_with_the_branch(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    settings = {"branch_create": WITH_COMPUTE, "start_anonymization": True}
    created = await anonymized(api, project_id, **settings)
    assert actions_of(created) == ["create_branch", "start_compute", "apply_config"]
    found = await states(api, branch_path_of(created), clock, 5)
    assert found == ["created", *["anonymizing"] * 4, "anonymized"]


@pytest.mark.parametrize("endpoints", [[], [{"type": "read_write"}]])
async def test_branch_created_archived_is_unarchived_to_anonymize(
    api: Client, clock: ManualClock, project_id: str, endpoints: list[dict[str, str]]
) -> None:
    spec = {"branch": {"archived": True}, "endpoints": endpoints}
    created = await anonymized(api, project_id, branch_create=spec, start_anonymization=True)
    actions = actions_of(created)
    assert actions[-3:] == ["timeline_archive", "timeline_unarchive", "apply_config"]
    assert (await api.get(branch_path_of(created)))["branch"] == created["branch"]
    clock.advance(9)
    assert (await api.get(branch_path_of(created)))["branch"]["current_state"] == "ready"


async def test_idle_compute_is_started_to_anonymize(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    path = branch_path_of(await anonymized(api, project_id, branch_create=WITH_COMPUTE))
    clock.advance(3600)
    await api.request("POST", f"{path}/anonymize")
    assert (await api.actions(project_id))[-2:] == ["start_compute", "apply_config"]
    assert await states(api, path, clock, 2) == ["anonymizing", "anonymizing", "anonymized"]


async def test_failed_run_shows_its_error_and_can_be_repeated(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    path = branch_path_of(await anonymized(api, project_id))
    clock.advance(1)
    await api.control_plane.fail_next("apply_config", error="no such column")
    await api.request("POST", f"{path}/anonymize")
    clock.advance(1)
    status = await api.get(f"{path}/anonymized_status")
    assert (status["state"], status["status_message"]) == ("error", "no such column")
    assert status["failed_at"] == status["last_run"]["completed_at"] == "2026-01-01T00:00:02Z"
    await api.request("POST", f"{path}/anonymize")
    assert await states(api, path, clock, 1) == ["anonymizing", "anonymized"]
    assert "failed_at" not in await api.get(f"{path}/anonymized_status")
    assert (await api.request("POST", f"{path}/anonymize"))["state"] == "anonymizing"


async def test_branch_whose_creation_fails_is_never_anonymized(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await api.control_plane.fail_next("create_branch")
    path = branch_path_of(await anonymized(api, project_id, start_anonymization=True))
    error = "initialization_error"
    assert await states(api, path, clock, 2) == ["created", error, error]
    assert "last_run" not in await api.get(f"{path}/anonymized_status")
    await api.expect_error(409, "initialization_error", "POST", f"{path}/anonymize")


async def test_run_does_not_start_if_its_compute_fails_to_start(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    path = branch_path_of(await anonymized(api, project_id, branch_create=WITH_COMPUTE))
    clock.advance(3600)
    await api.control_plane.fail_next("start_compute")
    await api.request("POST", f"{path}/anonymize")
    clock.advance(9)
    status = await api.get(f"{path}/anonymized_status")
    assert (status["state"], "not started" in status["status_message"]) == ("error", True)
    assert "started_at" not in status["last_run"]
    assert status["last_run"]["completed_at"] == status["failed_at"]


@pytest.mark.fact("anonymized-1", "anonymized-2", "anonymized-3", "anonymized-4")
async def test_anonymized_branch_has_a_compute_and_restricted_actions(
    api: Client, project_id: str
) -> None:
    created = await anonymized(api, project_id)
    [compute] = created["endpoints"]
    assert compute["type"] == "read_write"
    only_anon = {"use_defaults": False, "enabled_libraries": ["anon"]}
    assert compute["settings"]["preload_libraries"] == only_anon
    actions = [action["name"] for action in created["branch"]["restricted_actions"]]
    assert actions == ["restore", "delete-rw-endpoint"]
    path = branch_path_of(created)
    body = {"source_branch_id": created["branch"]["parent_id"]}
    await api.expect_error(422, "anonymized", "POST", f"{path}/restore", body)
    endpoint = f"/projects/{project_id}/endpoints/{compute['id']}"
    await api.expect_error(422, "anonymized", "DELETE", endpoint)
    assert "restricted_actions" not in await api.main_branch(project_id)


@pytest.mark.fact("anonymized-6", "anonymized-7")
async def test_rule_with_two_maskings_and_project_with_an_allow_list_are_refused(
    api: Client, project_id: str
) -> None:
    path = branch_path_of(await anonymized(api, project_id))
    rules = {"masking_rules": [RULE | {"masking_value": "nobody"}]}
    await api.expect_error(400, "masking_value", "PATCH", f"{path}/masking_rules", rules)
    path = f"/projects/{project_id}/branch_anonymized"
    await api.expect_error(400, "masking_value", "POST", path, rules)
    settings = {"project": {"settings": {"allowed_ips": {"ips": ["192.0.2.1"]}}}}
    await api.request("PATCH", f"/projects/{project_id}", settings)
    await api.expect_error(422, "allow list", "POST", path, {})


async def test_anonymization_requires_an_initialized_branch_and_no_other_run(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    path = branch_path_of(await anonymized(api, project_id))
    await api.expect_error(409, "created", "POST", f"{path}/anonymize")
    clock.advance(1)
    await api.request("POST", f"{path}/anonymize")
    await api.expect_error(409, "anonymizing", "POST", f"{path}/anonymize")


@pytest.mark.parametrize(
    ("method", "action"),
    [
        ("GET", "anonymized_status"),
        ("GET", "masking_rules"),
        ("PATCH", "masking_rules"),
        ("POST", "anonymize"),
    ],
)
async def test_other_branches_have_no_masking_rules_and_no_status(
    api: Client, project_id: str, method: str, action: str
) -> None:
    path = branch_path_of(await api.branch(project_id))
    body: object = {"masking_rules": []} if method == "PATCH" else None
    await api.expect_error(404, "anonymized branch", method, f"{path}/{action}", body)


@pytest.mark.control_plane(lock="branch")
async def test_anonymizing_a_locked_branch_is_423(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(9)
    path = branch_path_of(await anonymized(api, project_id))
    clock.advance(2)
    await api.add_database(path, "x")
    assert (await api.send("POST", f"{path}/anonymize")).status == 423
