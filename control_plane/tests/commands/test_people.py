"""The commands for users, organizations and members."""

import pytest

from control_plane.tests.client import Client
from control_plane.tests.commands.conftest import Shell
from neonctl_local.__main__ import main


def key_in(line: str) -> str:
    name, equals, key = line.partition("=")
    assert (name, equals) == ("export NEON_API_KEY", "=")
    return key


async def test_people_share_projects_with_commands_and_http_only(api: Client, shell: Shell) -> None:
    """Any member creates a key, a user leaves, and projects move between organizations."""
    analytics = await shell.expect("org", "create", "Analytics")
    spec = {"project": {"name": "events", "org_id": analytics}}
    project_id = (await api.request("POST", "/projects", spec))["project"]["id"]

    invitation = await shell.expect("member", "invite", analytics, "ada@example.com")
    secret = await shell.expect("member", "secret", invitation)
    shell.type_in(f"{secret}\n")
    ada = key_in(await shell.expect("member", "accept", invitation, "Ada"))
    bea = key_in(await shell.expect("user", "create", "Bea", "bea@example.com"))
    await shell.expect("member", "invite", analytics, "bea@example.com", "--role", "admin")

    path = f"/organizations/{analytics}/api_keys"
    body = {"key_name": "events only", "project_id": project_id}
    scoped = (await api.request("POST", path, body, key=ada))["key"]
    assert await api.get(f"/projects/{project_id}", key=scoped)

    shell.act_as(ada)
    await shell.expect("member", "leave", analytics)
    assert (await api.send("GET", f"/projects/{project_id}", key=ada)).status == 404

    shell.act_as(bea)
    shop = await shell.expect("org", "create", "Shop")
    assert await shell.rows("org", "list") == [[analytics, "Analytics"], [shop, "Shop"]]
    path = f"/organizations/{analytics}/projects/transfer"
    body = {"destination_org_id": shop, "project_ids": [project_id]}
    assert await api.request("POST", path, body, key=bea) == {}
    assert (await api.send("GET", f"/projects/{project_id}")).status == 404
    assert (await api.send("GET", f"/projects/{project_id}", key=scoped)).status == 401
    assert (await api.get(f"/projects/{project_id}", key=bea))["project"]["org_id"] == shop


async def test_invitations_are_listed_and_revoked(api: Client, shell: Shell) -> None:
    org_id = api.control_plane.org_id
    await shell.expect("user", "create", "Bea", "bea@example.com")
    pending = await shell.expect("member", "invite", org_id, "ada@example.com", "--role", "admin")
    joined = await shell.run("member", "invite", org_id, "bea@example.com")
    assert "is a member now" in joined.err
    accepted = joined.out.strip()
    assert await shell.rows("member", "invitations", org_id) == [
        [accepted, "accepted", "member", "bea@example.com"],
        [pending, "pending", "admin", "ada@example.com"],
    ]
    await shell.expect("member", "revoke", pending)
    assert (await shell.rows("member", "invitations", org_id))[1][1] == "revoked"


async def test_members_are_listed_changed_and_removed(api: Client, shell: Shell) -> None:
    org_id = api.control_plane.org_id
    for name in ("ada", "bea", "cal"):
        await shell.expect("user", "create", name, f"{name}@example.com")
        await shell.expect("member", "invite", org_id, f"{name}@example.com")
    ids = {email: user_id for user_id, email, _ in await shell.rows("user", "list")}
    await shell.expect("member", "role", org_id, "Ada@example.com", "admin")
    await shell.expect("member", "remove", org_id, ids["bea@example.com"])
    assert sorted(await shell.rows("member", "list", org_id), key=lambda row: row[2]) == [
        [ids["ada@example.com"], "admin", "ada@example.com"],
        [ids["cal@example.com"], "member", "cal@example.com"],
        [ids["first.user@neon.invalid"], "admin", "first.user@neon.invalid"],
    ]
    missing = await shell.run("member", "remove", org_id, "bea@example.com")
    assert (missing.status, missing.out) == (1, "")
    assert f"'bea@example.com' is not a member of {org_id}" in missing.err


async def test_members_of_all_pages_are_listed(
    api: Client, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neonctl_local.commands.people.PAGE", 2)
    for name in ("ada", "bea", "cal", "dee"):
        await api.new_user_key(f"{name}@example.com")
        await shell.expect("member", "invite", api.control_plane.org_id, f"{name}@example.com")
    assert len(await shell.rows("member", "list", api.control_plane.org_id)) == 5


async def test_output_for_a_shell_contains_the_key_only(api: Client, shell: Shell) -> None:
    await shell.expect("member", "invite", api.control_plane.org_id, "ada@example.com")
    created = await shell.run("user", "create", "Ada", "ada@example.com")
    assert (await api.get("/users/me", key=key_in(created.out.strip())))["name"] == "Ada"
    assert "(ada@example.com)" in created.err
    assert f"joined {api.control_plane.org_id} (First Organization)" in created.err
    assert "neon_api_key" not in created.err


async def test_text_that_changes_a_terminal_is_replaced(api: Client, shell: Shell) -> None:
    await api.control_plane.create_user("A\x1b[31m\nda", "ada@example.com")
    assert (await shell.rows("user", "list"))[1][1:] == ["ada@example.com", "A�[31m�da"]


async def test_error_response_is_printed_as_one_line(shell: Shell) -> None:
    result = await shell.run("user", "create", "Ada", "ada")
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith("python -m neonctl_local: invalid request: ")
    assert result.err.endswith("(status 400)\n")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [("user",), ("member", "invite", "org-1"), ("org", "drop")])
def test_incomplete_command_prints_its_usage(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: python -m neonctl_local" in capsys.readouterr().err


def test_help_of_the_server_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"], prog="neonctl-async local")
    assert "user, org, member, fault" in " ".join(capsys.readouterr().out.split())


async def test_argument_that_is_no_text_is_an_error(shell: Shell) -> None:
    result = await shell.run("user", "create", "Ad\udcff", "ada@example.com")
    assert (result.status, result.out) == (1, "")
    assert "is not text" in result.err
