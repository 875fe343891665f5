import msgspec
import pytest

from neonctl_async.models.secret import decode_hook
from neonctl_async.types import Endpoint, EndpointUpdated
from tests.cli.conftest import CommandLine
from tests.cli.served import Served


def changed(output: str) -> EndpointUpdated:
    return msgspec.json.decode(output, type=EndpointUpdated, dec_hook=decode_hook)


def state(quick: Served, endpoint: Endpoint) -> str:
    return quick.run(
        lambda neon: neon.endpoints.get(endpoint.project_id, endpoint.id)
    ).current_state


def test_compute_is_created_with_its_settings(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    branch_id = quick.branch(project_id, "preview").branch.id
    arguments = ("--branch", "preview", "--name", "reader", "--type", "read_only", "--cu", "0.5-3")
    options = ("--suspend-timeout", "10m", "-o", "json", "-p", project_id)
    created = changed(cli("endpoints", "create", *arguments, *options, at=quick).stdout)
    endpoint = created.endpoint
    assert (endpoint.branch_id, endpoint.name, endpoint.type) == (branch_id, "reader", "read_only")
    sizes = (endpoint.autoscaling_limit_min_cu, endpoint.autoscaling_limit_max_cu)
    assert (sizes, endpoint.suspend_timeout_seconds) == ((0.5, 3), 600)
    assert [one.status for one in created.operations] == ["finished"]


def test_computes_are_listed_with_their_state(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    quick.branch(created.project.id, "empty")
    endpoint = created.endpoints[0]
    arguments = ("endpoints", "list", "-p", created.project.id)
    header, line = cli(*arguments, at=quick).stdout.splitlines()
    assert header.split() == ["ID", "Branch", "Type", "State", "Size", "Name"]
    assert line.split()[:4] == [endpoint.id, created.branch.name, "read_write", "active"]
    assert cli(*arguments, "--branch", "empty", "-o", "raw", at=quick).stdout == ""
    assert cli(*arguments, "--branch", "main", "-o", "raw", at=quick).stdout == f"{endpoint.id}\n"


def test_compute_is_suspended_started_and_restarted(cli: CommandLine, quick: Served) -> None:
    endpoint = quick.project().endpoints[0]

    def act(action: str) -> str:
        result = cli("endpoints", action, endpoint.id, "-p", endpoint.project_id, at=quick)
        assert result.exit_code == 0, result.output
        return state(quick, endpoint)

    assert act("suspend") == "idle"
    assert act("start") == "active"
    assert act("restart") == "active"


def test_compute_is_found_by_its_name(cli: CommandLine, quick: Served) -> None:
    endpoint = quick.project().endpoints[0]
    env = {"NEON_PROJECT_ID": endpoint.project_id}
    cli("endpoints", "update", endpoint.id, "--name", "primary", at=quick, **env)
    result = cli("endpoints", "update", "primary", "--cu", "2", "-o", "json", at=quick, **env)
    assert changed(result.stdout).endpoint.id == endpoint.id
    shown = cli("endpoints", "get", "primary", at=quick, **env).stdout
    assert "Size         2 CU" in shown
    assert f"Host         {endpoint.host}" in shown


def test_unknown_compute_is_reported(cli: CommandLine, quick: Served) -> None:
    [endpoint] = quick.project().endpoints
    result = cli("endpoints", "get", "primary", "-p", endpoint.project_id, at=quick)
    assert result.stderr == (
        f"error: no compute of project {endpoint.project_id} has the name or the id 'primary'; "
        f"its computes: {endpoint.id}\n"
    )
    assert result.exit_code == 3


def test_update_without_a_change_is_a_usage_error(cli: CommandLine, quick: Served) -> None:
    result = cli("endpoints", "update", "x", "-p", "x", at=quick)
    options = "--name, --cu, --suspend-timeout or --disabled"
    assert result.stderr == f"error: nothing to change: set {options}\n"
    assert result.exit_code == 2


@pytest.mark.parametrize("size", ["big", "1-", "-1", "1-x", "nan", "3-1", "0"])
def test_size_must_be_compute_units(cli: CommandLine, quick: Served, size: str) -> None:
    result = cli("endpoints", "create", "-p", "x", f"--cu={size}", at=quick, COLUMNS="200")
    assert f"{size!r} is not a size: expected compute units such as 2, or a range" in result.stderr
    assert (result.stdout, result.exit_code) == ("", 2)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("-1", -1), ("0", 0), ("90", 90), ("0.3", 1), ("5m", 300), ("7d", 604_800)],
)
def test_idle_time_is_a_duration_or_a_number_of_seconds(
    cli: CommandLine, quick: Served, text: str, seconds: int
) -> None:
    endpoint = quick.project().endpoints[0]
    arguments = ("endpoints", "update", endpoint.id, "-p", endpoint.project_id, "-o", "json")
    cli(*arguments, "--suspend-timeout", text, at=quick)
    changed = quick.run(lambda neon: neon.endpoints.get(endpoint.project_id, endpoint.id))
    assert changed.suspend_timeout_seconds == seconds


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("8d", "too long: expected at most 7d"),
        ("never", "not a duration"),
        ("-2", "not a duration"),
    ],
)
def test_other_idle_time_is_a_usage_error(
    cli: CommandLine, quick: Served, text: str, complaint: str
) -> None:
    arguments = ("endpoints", "update", "x", "-p", "x", f"--suspend-timeout={text}")
    result = cli(*arguments, at=quick, COLUMNS="200")
    assert f"{text!r} is {complaint}" in result.stderr
    assert (result.stdout, result.exit_code) == ("", 2)


def test_deleted_compute_is_gone(cli: CommandLine, quick: Served) -> None:
    endpoint = quick.project().endpoints[0]
    arguments = ("endpoints", "delete", endpoint.id, "-p", endpoint.project_id)
    result = cli(*arguments, "-o", "raw", at=quick)
    assert (result.stdout, result.exit_code) == (f"{endpoint.id}\n", 0)
    assert quick.run(lambda neon: neon.endpoints.list(endpoint.project_id)) == []


def test_compute_is_disabled_and_enabled(cli: CommandLine, quick: Served) -> None:
    [endpoint] = quick.project().endpoints
    for option, is_disabled in (("--disabled", True), ("--enabled", False)):
        cli("endpoints", "update", endpoint.id, option, "-p", endpoint.project_id, at=quick)
        found = quick.run(lambda neon: neon.endpoints.get(endpoint.project_id, endpoint.id))
        assert found.disabled is is_disabled
