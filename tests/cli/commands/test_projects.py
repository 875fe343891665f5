from pathlib import Path

import msgspec
import pytest

from neonctl_async.models.secret import decode_hook
from neonctl_async.types import Project, ProjectCreated
from neonctl_local import Durations, LocalControlPlane
from tests.cli.conftest import CommandLine
from tests.cli.served import Served, served
from tests.support.records import SECRETS


def test_projects_are_listed_with_id_name_and_region(cli: CommandLine, quick: Served) -> None:
    created = quick.project("listed")
    result = cli("projects", "list", "--search", "listed", at=quick)
    header, line = result.stdout.splitlines()
    assert header.split() == ["ID", "Name", "Region", "Postgres", "Created"]
    assert line.split()[:3] == [created.project.id, "listed", "aws-us-east-2"]
    assert (result.stderr, result.exit_code) == ("", 0)


def test_limit_bounds_the_list(cli: CommandLine, quick: Served) -> None:
    for number in range(3):
        quick.project(f"limited-{number}")
    arguments = ("projects", "list", "--search", "limited", "--output", "raw")
    assert len(cli(*arguments, at=quick).stdout.split()) == 3
    assert len(cli(*arguments, "--limit", "2", at=quick).stdout.split()) == 2


def test_project_is_shown(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    result = cli("projects", "get", id, "--output", "json", at=quick)
    assert msgspec.json.decode(result.stdout, type=Project).id == id


def test_created_project_is_ready_and_hides_its_password(cli: CommandLine, quick: Served) -> None:
    result = cli("projects", "create", "--name", "made", at=quick)
    assert "Create timeline: OK, Start compute: OK" in result.stdout
    assert "**********" in result.stdout
    assert not SECRETS.search(result.output_bytes)
    assert result.exit_code == 0


@pytest.mark.parametrize("output", ["table", "json"])
def test_show_secrets_shows_passwords(cli: CommandLine, quick: Served, output: str) -> None:
    result = cli("projects", "create", "--show-secrets", "--output", output, at=quick)
    assert SECRETS.search(result.stdout_bytes)
    assert quick.control_plane.api_key not in result.output


def test_project_that_is_not_ready_in_time_is_reported_with_its_id(
    cli: CommandLine, quick: Served
) -> None:
    quick.fail_next("create_timeline")
    result = cli("projects", "create", "--output", "json", at=quick)
    shown = msgspec.json.decode(result.stdout, type=ProjectCreated, dec_hook=decode_hook)
    assert [one.status for one in shown.operations] == ["failed", "failed"]
    assert f"project {shown.project.id} was created\nerror: 2 of 2" in result.stderr
    assert result.exit_code == 1


def test_deleted_project_is_gone(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    assert cli("projects", "delete", id, at=quick).exit_code == 0
    result = cli("projects", "get", id, at=quick)
    assert (result.stdout, result.exit_code) == ("", 3)
    assert result.stderr.startswith(f"error: GET /projects/{id}: 404 Not Found")


def test_project_is_renamed_and_its_new_computes_get_another_size(
    cli: CommandLine, quick: Served
) -> None:
    id = quick.project("before").project.id
    result = cli("projects", "update", id, "--name", "after", "--cu", "0.5-2", at=quick)
    assert result.stdout.splitlines()[1].split() == ["Name", "after"]
    defaults = quick.run(lambda neon: neon.projects.get(id)).default_endpoint_settings
    assert defaults is not None
    assert (defaults.autoscaling_limit_min_cu, defaults.autoscaling_limit_max_cu) == (0.5, 2)


def test_update_of_nothing_is_a_usage_error(cli: CommandLine, quick: Served) -> None:
    result = cli("projects", "update", "x", at=quick)
    options = "--name, --cu, --suspend-timeout or --history-retention"
    assert result.stderr == f"error: nothing to change: set {options}\n"
    assert result.exit_code == 2


@pytest.mark.parametrize("by_name", [True, False])
def test_deleted_project_is_listed_and_recovered(
    cli: CommandLine, quick: Served, *, by_name: bool
) -> None:
    id = quick.project(name := f"lost-{by_name}").project.id
    cli("projects", "delete", id, at=quick)
    quick.project(name)  # the name alone does not select a project that still exists
    listed = cli("projects", "list", "--deleted", "--search", name, "-o", "raw", at=quick)
    assert listed.stdout == f"{id}\n"
    result = cli("projects", "recover", name if by_name else id, "-o", "raw", at=quick)
    assert (result.stdout, result.exit_code) == (f"{id}\n", 0)
    assert quick.run(lambda neon: neon.projects.get(id)).name == name


def test_project_that_is_not_deleted_cannot_be_recovered_by_name(
    cli: CommandLine, quick: Served
) -> None:
    quick.project("present")
    result = cli("projects", "recover", "present", at=quick)
    assert result.stderr.startswith(
        "error: no deleted project of the API key's account has the name or the id 'present'"
    )
    assert result.exit_code == 3


@pytest.mark.parametrize("by_option", [True, False])
@pytest.mark.parametrize("by_name", [True, False])
def test_commands_name_the_organization(
    cli: CommandLine, *, by_option: bool, by_name: bool
) -> None:
    control_plane = LocalControlPlane(durations=Durations(default=0), require_org_id=True)
    with served(control_plane) as server:
        refused = cli("projects", "list", at=server)
        assert (refused.exit_code, "--org" in refused.stderr) == (3, True)

        org = server.organization().name if by_name else control_plane.org_id
        option = ("--org", org) if by_option else ()
        env = {} if by_option else {"NEON_ORG_ID": org}
        assert cli("projects", "create", "--name", "shop", *option, at=server, **env).exit_code == 0
        assert "shop" in cli("projects", "list", *option, at=server, **env).stdout
        Path("tenants.csv").write_text(
            "project,branch,region\nshop,staging,\nnew,staging,aws-us-east-2\n"
        )
        applied = cli("fleet", "apply", "tenants.csv", *option, at=server, **env)
        assert applied.stderr.endswith("2 of 2 tenants are done: 2 created, 0 adopted\n")


def test_project_name_is_searched_in_the_organization(cli: CommandLine) -> None:
    control_plane = LocalControlPlane(durations=Durations(default=0), require_org_id=True)
    with served(control_plane) as server:
        env = {"NEON_ORG_ID": server.organization().name}
        cli("projects", "create", "--name", "shop", at=server, **env)
        ensured = cli("branches", "ensure", "staging", "-p", "shop", at=server, **env)
        assert (ensured.exit_code, "created" in ensured.output) == (0, True)
        refused = cli("branches", "ensure", "staging", "-p", "shop", at=server)
        assert refused.exit_code == 3
        for step in ("--org", "NEON_ORG_ID", "'orgs list'"):
            assert step in " ".join(refused.stderr.split())


def test_created_project_has_the_given_names_and_limits(cli: CommandLine, quick: Served) -> None:
    names = ("--branch", "production", "--database", "books", "--role", "ada")
    limits = ("--cu", "0.5-2", "--suspend-timeout", "60", "--history-retention", "12h")
    result = cli("projects", "create", *names, *limits, "-o", "json", at=quick)
    created = msgspec.json.decode(result.stdout, type=ProjectCreated, dec_hook=decode_hook)
    assert created.branch.name == "production"
    assert [(one.name, one.owner_name) for one in created.databases] == [("books", "ada")]
    [compute] = created.endpoints
    assert (compute.autoscaling_limit_min_cu, compute.autoscaling_limit_max_cu) == (0.5, 2)
    assert compute.suspend_timeout_seconds == 60
    assert created.project.history_retention_seconds == 12 * 3600
    assert created.project.default_endpoint_settings is not None
    assert created.project.default_endpoint_settings.autoscaling_limit_max_cu == 2


def test_history_can_be_turned_off(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    cli("projects", "update", id, "--history-retention", "0", at=quick)
    assert quick.run(lambda neon: neon.projects.get(id)).history_retention_seconds == 0
