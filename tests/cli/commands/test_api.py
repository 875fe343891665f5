import json

import pytest

from neonctl_async.cli.descriptions import described, endpoint_names
from tests.cli.conftest import CommandLine
from tests.cli.served import Served


def test_response_is_printed_as_json(cli: CommandLine, quick: Served) -> None:
    created = quick.project("raw")
    path = f"/projects/{created.project.id}"
    result = cli("api", "GET", path, at=quick)
    assert result.stdout.startswith('{\n  "project": {\n')
    assert json.loads(result.stdout)["project"]["name"] == "raw"
    assert (result.stderr, result.exit_code) == ("", 0)
    for output in ("jsonl", "raw"):
        line = cli("api", "GET", path, "-o", output, at=quick).stdout
        assert line.count("\n") == 1
        assert json.loads(line) == json.loads(result.stdout)
    assert "name: raw\n" in cli("api", "get", path, "-o", "yaml", at=quick).stdout


def test_query_may_follow_the_path(cli: CommandLine, quick: Served) -> None:
    quick.project("queried 1&2")
    result = cli("api", "GET", "/projects?search=queried%201%262&limit=1", at=quick)
    assert [one["name"] for one in json.loads(result.stdout)["projects"]] == ["queried 1&2"]


@pytest.mark.parametrize("typed", [None, '\ufeff{"project": {"name": "after"}}\n'])
def test_body_is_an_option_or_standard_input(
    cli: CommandLine, quick: Served, typed: str | None
) -> None:
    id = quick.project("before").project.id
    data = '{"project": {"name": "after"}}' if typed is None else "-"
    result = cli("api", "PATCH", f"/projects/{id}", "--data", data, at=quick, typed=typed)
    assert json.loads(result.stdout)["project"]["name"] == "after"


def test_started_operations_can_be_awaited(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    created = cli("api", "POST", f"/projects/{id}/branches", "-o", "jsonl", at=quick)
    waited = cli("operations", "wait", "--resume", "-", at=quick, typed=created.stdout)
    assert "Create branch" in waited.stdout
    assert waited.exit_code == 0


def test_empty_response_prints_nothing(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    branch_id = quick.branch(id).branch.id
    path = f"/projects/{id}/branches/{branch_id}"
    assert cli("api", "DELETE", path, at=quick).exit_code == 0
    repeated = cli("api", "DELETE", path, at=quick)
    assert (repeated.output, repeated.exit_code) == ("", 0)


@pytest.mark.parametrize("data", ["{name: preview}", ""])
def test_body_that_is_no_json_is_a_usage_error(cli: CommandLine, quick: Served, data: str) -> None:
    command = ("api", "POST", "/projects", "--data", "-")
    result = cli(*command, at=quick, typed=data, COLUMNS="200")
    assert "standard input is not JSON: " in result.stderr
    assert (result.stdout, result.exit_code) == ("", 2)


def test_body_is_not_in_the_error(cli: CommandLine, quick: Served) -> None:
    result = cli("api", "POST", "/projects", "--data", '{"password": "hunter2', at=quick)
    assert "hunter2" not in result.output
    assert result.exit_code == 2


@pytest.mark.parametrize("path", ["projects", "/projects/../users", "https://example.com/projects"])
def test_path_outside_the_api_is_a_usage_error(cli: CommandLine, quick: Served, path: str) -> None:
    result = cli("api", "GET", path, at=quick)
    assert result.stderr.startswith("error: path is '")
    assert (result.stdout, result.exit_code) == ("", 2)


def test_key_is_never_printed(cli: CommandLine, quick: Served) -> None:
    for path in ("/users/me", "/api_keys", "/nothing"):
        result = cli("api", "GET", path, "--verbose", at=quick)
        assert "GET " in result.stderr
        assert quick.control_plane.api_key not in result.output


def test_endpoints_are_listed_without_a_key(cli: CommandLine) -> None:
    result = cli("api", "--list")
    lines = result.stdout.splitlines()
    assert len(lines) > 150
    assert "PATCH /projects/{project_id}/branches/{branch_id}" in lines
    assert (result.stderr, result.exit_code) == ("", 0)


@pytest.mark.parametrize("path", ["/projects/{project_id}/snapshots", "projects/x-y-1/snapshots/"])
def test_endpoints_below_a_path_are_listed(cli: CommandLine, path: str) -> None:
    result = cli("api", "--list", path)
    assert result.stdout.splitlines() == [
        name for name in endpoint_names() if "}/snapshots" in name and "}/branches/" not in name
    ]
    assert (result.stderr, result.exit_code) == ("", 0)


def test_path_without_endpoints_is_a_usage_error(cli: CommandLine) -> None:
    result = cli("api", "--list", "/moons", COLUMNS="200")
    assert "no endpoint is at or below '/moons': --list shows all" in result.stderr
    assert result.exit_code == 2


@pytest.mark.parametrize(
    "wanted", ["POST /projects/{project_id}/branches", "post projects/late-frost-1/branches/"]
)
def test_endpoint_is_described_without_a_key(cli: CommandLine, wanted: str) -> None:
    title, *rows = cli("api", "--describe", wanted).stdout.splitlines()
    assert title == "POST /projects/{project_id}/branches"
    described = {row.split()[0]: row.split(maxsplit=1)[1] for row in rows}
    assert described["project_id"] == "path   string"
    assert described["branch.expires_at"] == "body   date-time"
    assert described["endpoints[].type"].endswith("read_only | read_write, required")


def test_path_describes_all_its_methods(cli: CommandLine) -> None:
    lines = cli("api", "--describe", "/projects").stdout.splitlines()
    assert [line for line in lines if line[0] != " "] == ["GET /projects", "POST /projects"]
    assert "  limit" in [line[:7] for line in lines]


def test_every_endpoint_can_be_described() -> None:
    for name in endpoint_names():
        assert next(described(name)).startswith(name)


def test_unknown_endpoint_is_a_usage_error(cli: CommandLine) -> None:
    result = cli("api", "--describe", "/moons", COLUMNS="200")
    assert "'/moons' is no endpoint: --list shows all" in result.stderr
    assert result.exit_code == 2
