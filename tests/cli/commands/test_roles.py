import msgspec
import pytest

from neonctl_async.models.secret import decode_hook
from neonctl_async.types import Role, RoleUpdated
from tests.cli.conftest import CommandLine
from tests.cli.served import Served
from tests.support.records import SECRETS


def test_password_of_a_new_role_is_hidden(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    result = cli("roles", "create", "--name", "app", "-p", project_id, at=quick)
    assert "Password    ********** (--show-secrets shows it)" in result.stdout
    assert "Apply config: OK" in result.stdout
    assert not SECRETS.search(result.output_bytes)
    assert result.exit_code == 0


def test_password_can_be_shown(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    project_id, branch_id = created.project.id, created.branch.id
    options = ("-p", project_id, "--show-secrets", "-o")
    shown = cli("roles", "create", "--name", "app", *options, "json", at=quick).stdout
    role = msgspec.json.decode(shown, type=RoleUpdated, dec_hook=decode_hook).role
    assert role.password is not None
    assert cli("roles", "get", "app", *options, "raw", at=quick).stdout == (
        f"{role.password.reveal()}\n"
    )
    reset = cli("roles", "reset-password", "app", *options, "raw", at=quick).stdout.strip()
    current = quick.run(lambda neon: neon.roles.reveal_password(project_id, branch_id, "app"))
    assert reset == current.reveal() != role.password.reveal()


@pytest.mark.parametrize("output", ["table", "json", "jsonl", "raw"])
def test_reset_password_is_hidden_by_default(cli: CommandLine, quick: Served, output: str) -> None:
    created = quick.project()
    arguments = ("roles", "reset-password", created.roles[0].name, "-p", created.project.id)
    result = cli(*arguments, "-o", output, at=quick)
    assert created.roles[0].name in result.stdout
    assert not SECRETS.search(result.output_bytes)


def test_role_without_login_has_no_password(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    arguments = ("roles", "create", "--name", "group", "--no-login", "-p", project_id)
    assert cli(*arguments, at=quick).exit_code == 0


def test_roles_are_listed_and_shown(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    options = ("-p", created.project.id, "-o", "jsonl")
    listed = cli("roles", "list", *options, at=quick).stdout
    [role] = msgspec.json.Decoder(Role, dec_hook=decode_hook).decode_lines(listed)
    assert role.name == created.roles[0].name
    shown = cli("roles", "get", role.name, *options, at=quick).stdout
    assert msgspec.json.decode(shown, type=Role, dec_hook=decode_hook) == role


def test_deleted_role_is_gone(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    project_id, branch_id = created.project.id, created.branch.id
    quick.role(project_id, branch_id, "app")
    assert cli("roles", "delete", "app", "-p", project_id, at=quick).exit_code == 0
    left = quick.run(lambda neon: neon.roles.list(project_id, branch_id))
    assert [role.name for role in left] == [created.roles[0].name]


@pytest.mark.parametrize("verb", ["get", "reset-password", "delete"])
def test_error_about_a_missing_role_lists_the_others(
    cli: CommandLine, quick: Served, verb: str
) -> None:
    created = quick.project()
    result = cli("roles", verb, "owner", "-p", created.project.id, at=quick)
    assert result.stderr == (
        f"error: no role of branch {created.branch.id} has the name 'owner'; its roles: "
        f"{created.roles[0].name}\n"
    )
    assert result.exit_code == 3
