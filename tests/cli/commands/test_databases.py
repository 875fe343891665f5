import msgspec
import pytest

from neonctl_async.types import Database
from neonctl_local import Fault
from tests.cli.conftest import CommandLine
from tests.cli.served import Served


def names(quick: Served, project_id: str, branch_id: str) -> set[str]:
    found = quick.run(lambda neon: neon.databases.list(project_id, branch_id))
    return {one.name for one in found}


def test_database_of_the_only_role_is_created(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    arguments = ("databases", "create", "--name", "orders", "-p", created.project.id)
    result = cli(*arguments, at=quick)
    assert result.stdout.splitlines()[1].split() == ["Owner", created.roles[0].name]
    assert "orders" in names(quick, created.project.id, created.branch.id)
    assert result.exit_code == 0


def test_owner_must_be_chosen_if_there_are_more_roles(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    quick.role(created.project.id, created.branch.id, "app")
    arguments = ("databases", "create", "--name", "orders", "-p", created.project.id)
    result = cli(*arguments, at=quick)
    assert result.stderr == (
        f"error: branch {created.branch.id} has 2 roles: set --owner-name to one of them: "
        f"{created.roles[0].name}, app\n"
    )
    assert result.exit_code == 2
    assert cli(*arguments, "--owner-name", "app", at=quick).exit_code == 0


def test_databases_of_a_branch_are_listed_and_shown(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    branch_id = quick.branch(project_id, "preview").branch.id
    options = ("--branch", "preview", "-p", project_id, "-o", "jsonl")
    [listed] = msgspec.json.Decoder(Database).decode_lines(
        cli("databases", "list", *options, at=quick).stdout
    )
    assert (listed.name, listed.branch_id) == ("neondb", branch_id)
    shown = cli("databases", "get", "neondb", *options, at=quick).stdout
    assert msgspec.json.decode(shown, type=Database) == listed


def test_branch_of_the_context_is_the_default(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    branch_id = quick.branch(project_id, "preview").branch.id
    cli("set-context", "--project-id", project_id, "--branch", "preview")
    cli("databases", "create", "--name", "orders", at=quick)
    assert "orders" in names(quick, project_id, branch_id)


def test_deleted_database_is_gone(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    result = cli("databases", "delete", "neondb", "-p", created.project.id, at=quick)
    assert result.stdout.splitlines()[0].split() == ["Deleted", "neondb"]
    assert names(quick, created.project.id, created.branch.id) == set()


@pytest.mark.parametrize("verb", ["get", "delete"])
def test_error_about_a_missing_database_lists_the_others(
    cli: CommandLine, quick: Served, verb: str
) -> None:
    created = quick.project()
    result = cli("databases", verb, "neondbb", "-p", created.project.id, at=quick)
    assert result.stderr == (
        f"error: no database of branch {created.branch.id} has the name 'neondbb'; its databases: "
        "neondb\n"
    )
    assert result.exit_code == 3


def test_missing_database_is_reported_even_if_the_others_may_not_be_listed(
    cli: CommandLine, quick: Served
) -> None:
    created = quick.project()
    route = "GET /projects/{project_id}/branches/{branch_id}/databases"
    quick.control_plane.inject(Fault(route=route, status=403, times=1))
    result = cli("databases", "get", "neondbb", "-p", created.project.id, at=quick)
    assert "404 Not Found: database 'neondbb' not found" in result.stderr
    assert result.exit_code == 3
