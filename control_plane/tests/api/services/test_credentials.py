"""Credentials of a branch."""

import re
from pathlib import Path

import pytest

from control_plane.tests.client import Client, branch_path_of, serve
from control_plane.tests.keys import project_key
from neonctl_local import ManualClock

SCOPES = ["storage:read", "storage:write"]
BODY = {"name": "uploads", "scopes": SCOPES, "principal_type": "user"}


async def test_created_credential_has_both_secrets(api: Client, branch_path: str) -> None:
    issued = await api.request("POST", f"{branch_path}/credentials", BODY)
    token_id, token, key = (
        issued.pop(name) for name in ("token_id", "api_token", "s3_secret_access_key")
    )
    assert re.fullmatch(r"nak_live_[0-9a-f]{32}", token_id)
    assert re.fullmatch(rf"nt_live_{token_id[9:21]}_[\w-]{{32}}", token)
    assert re.fullmatch(r"nsk_live_[0-9a-f]{64}", key)
    assert issued == {
        "token_id_short": token_id[9:21],
        "name": "uploads",
        "branch_id": branch_path.rpartition("/")[2],
        "created_at": "2026-01-01T00:00:09Z",
        "scopes": SCOPES,
    }


async def test_list_has_no_secrets_and_includes_revoked_credentials(
    api: Client, clock: ManualClock, branch_path: str
) -> None:
    path = f"{branch_path}/credentials"
    first = await api.request("POST", path, BODY)
    unnamed = {"scopes": ["functions:invoke"] * 2, "principal_type": "user"}
    second = await api.request("POST", path, unnamed)
    clock.advance(60)
    assert (await api.send("DELETE", f"{path}/{first['token_id']}")).status == 204
    secrets = {"api_token", "s3_secret_access_key"}
    expected = [
        {name: value for name, value in issued.items() if name not in secrets}
        | {"principal_type": "user"}
        for issued in (first, second)
    ]
    expected[0]["revoked_at"] = "2026-01-01T00:01:09Z"
    expected[1]["scopes"] = ["functions:invoke"]
    assert "name" not in second
    assert (await api.get(path))["credentials"] == expected


async def test_revealed_secrets_are_those_of_the_creation(api: Client, branch_path: str) -> None:
    path = f"{branch_path}/credentials"
    issued = await api.request("POST", path, BODY)
    names = ("token_id", "api_token", "s3_secret_access_key")
    expected = {name: issued[name] for name in names}
    assert await api.request("POST", f"{path}/{issued['token_id']}/reveal") == expected


async def test_credential_is_revealed_through_any_branch_of_its_project(
    api: Client, branch_path: str
) -> None:
    project_id = branch_path.split("/")[2]
    issued = await api.request("POST", f"{branch_path}/credentials", BODY)
    other = branch_path_of(await api.branch(project_id, name="other"))
    credential = f"credentials/{issued['token_id']}"
    revealed = await api.request("POST", f"{other}/{credential}/reveal")
    assert revealed["api_token"] == issued["api_token"]
    for method, path in (("POST", f"{credential}/rotate"), ("DELETE", credential)):
        await api.expect_error(404, issued["token_id"], method, f"{other}/{path}")
    assert (await api.get(f"{other}/credentials"))["credentials"] == []
    foreign = f"/projects/{(await api.project())['project']['id']}"
    foreign = f"{foreign}/branches/{(await api.main_branch(foreign.split('/')[2]))['id']}"
    await api.expect_error(404, issued["token_id"], "POST", f"{foreign}/{credential}/reveal")


async def test_rotated_credential_has_new_secrets_and_the_same_id(
    api: Client, clock: ManualClock, branch_path: str
) -> None:
    path = f"{branch_path}/credentials"
    issued = await api.request("POST", path, BODY)
    clock.advance(60)
    path = f"{path}/{issued['token_id']}"
    rotated = await api.request("POST", f"{path}/rotate")
    for name in ("api_token", "s3_secret_access_key"):
        assert rotated[name] != issued[name]
        issued[name] = rotated[name]
    assert rotated == issued | {"principal_type": "user"}
    revealed = await api.request("POST", f"{path}/reveal")
    assert revealed.items() <= rotated.items()


async def test_revoked_credential_is_neither_revealed_nor_rotated(
    api: Client, branch_path: str
) -> None:
    path = f"{branch_path}/credentials"
    path = f"{path}/{(await api.request('POST', path, BODY))['token_id']}"
    for _ in range(2):
        assert (await api.send("DELETE", path)).status == 204
    for action in ("reveal", "rotate"):
        await api.expect_error(404, "credential", "POST", f"{path}/{action}")


async def test_unknown_credential_is_404(api: Client, branch_path: str) -> None:
    path = f"{branch_path}/credentials/nak_live_0"
    for method, suffix in (("DELETE", ""), ("POST", "/reveal"), ("POST", "/rotate")):
        await api.expect_error(404, "credential 'nak_live_0' not found", method, f"{path}{suffix}")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"scopes": []}, "scopes"),
        ({"scopes": ["storage:delete"]}, "scopes"),
        ({"principal_type": "system"}, "principal_type"),
        ({"name": "x" * 257}, "name"),
        ({"name": " "}, "name"),
        ({"scopes": None}, "scopes"),
    ],
)
async def test_invalid_credential_is_400(
    api: Client, branch_path: str, changes: dict[str, object], field: str
) -> None:
    await api.expect_error(400, field, "POST", f"{branch_path}/credentials", BODY | changes)


async def test_credentials_of_a_branch_are_deleted_with_it(
    api: Client, clock: ManualClock, branch_path: str
) -> None:
    project_id = branch_path.split("/")[2]
    child = branch_path_of(await api.branch(project_id, name="child"))
    issued = await api.request("POST", f"{child}/credentials", BODY)
    clock.advance(9)
    await api.request("DELETE", child)
    assert (await api.send("GET", f"{child}/credentials")).status == 404
    revealed = f"{branch_path}/credentials/{issued['token_id']}/reveal"
    await api.expect_error(404, issued["token_id"], "POST", revealed)


async def test_project_scoped_key_issues_credentials_for_its_project_only(
    api: Client, branch_path: str
) -> None:
    other = (await api.project())["project"]["id"]
    for project_id, status in ((branch_path.split("/")[2], 201), (other, 404)):
        _, token = await project_key(api, project_id)
        reply = await api.send("POST", f"{branch_path}/credentials", BODY, key=token)
        assert reply.status == status


async def test_secrets_survive_a_restart(tmp_path: Path) -> None:
    data = tmp_path / "data.db"
    async with serve(data=data) as api:
        created = await api.project()
        path = f"/projects/{created['project']['id']}/branches/{created['branch']['id']}"
        issued = await api.request("POST", f"{path}/credentials", BODY)
        key = api.key
    async with serve(key, data=data) as api:
        path = f"{path}/credentials/{issued['token_id']}/reveal"
        assert (await api.request("POST", path)).items() <= issued.items()


async def test_reset_deletes_credentials(api: Client, branch_path: str) -> None:
    issued = await api.request("POST", f"{branch_path}/credentials", BODY)
    await api.control_plane.reset()
    created = await api.project()
    project_id = created["project"]["id"]
    path = f"/projects/{project_id}/branches/{created['branch']['id']}/credentials"
    await api.expect_error(404, issued["token_id"], "POST", f"{path}/{issued['token_id']}/reveal")
