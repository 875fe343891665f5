"""The command that plans faults and failures on a running server."""

import json

from control_plane.tests.client import Client
from control_plane.tests.commands.conftest import Shell

FAULT = '{"route": "GET /projects", "status": 503, "times": 2}'
FAILURE = '{"action": "create_branch", "branch": "preview", "after": 1}'


async def planned(shell: Shell, *arguments: str) -> dict[str, tuple[int, object]]:
    """Run a command. Return what it lists, by id."""
    rows = await shell.rows("fault", *arguments)
    return {id: (int(fired), json.loads(plan)) for id, fired, plan in rows}


async def test_faults_and_failures_are_added_listed_and_cleared(
    api: Client, shell: Shell, project_id: str
) -> None:
    fault, failure = json.loads(FAULT), json.loads(FAILURE)
    added = await planned(shell, "add", FAULT, FAILURE)
    assert added == {"fault-1": (0, fault), "failure-1": (0, failure)}
    assert (await api.send("GET", "/projects")).status == 503
    await api.branch(project_id)
    assert (await planned(shell, "list"))["fault-1"] == (1, fault)
    assert await planned(shell, "clear", "fault-1") == {"failure-1": (0, failure)}
    assert (await api.send("GET", "/projects")).status == 200
    assert await planned(shell, "clear") == {}
    assert await api.control_plane.planned_failures() == []


async def test_faults_of_all_requests_can_be_cleared(api: Client, shell: Shell) -> None:
    await planned(shell, "add", "rate-limited")
    limited = await api.send("GET", "/projects")
    assert (limited.status, limited.headers["Retry-After"]) == (429, "60")
    assert await planned(shell, "clear") == {}
    assert (await api.send("GET", "/projects")).status == 200


async def test_invalid_plans_change_nothing(shell: Shell) -> None:
    result = await shell.run("fault", "add", FAILURE, '{"route": "GET /project", "status": 503}')
    assert (result.status, result.out) == (1, "")
    assert "did you mean 'GET /projects'?" in result.err
    assert await planned(shell, "list") == {}
    missing = await shell.run("fault", "clear", "fault-7")
    assert (missing.status, "fault-7" in missing.err) == (1, True)
    too_many = await shell.run("fault", "add", *["slow-friday"] * 51)
    assert "more than 100" in too_many.err


async def test_only_the_first_user_plans_faults(api: Client, shell: Shell) -> None:
    created = await shell.expect("user", "create", "Bea", "bea@example.com")
    shell.act_as(created.removeprefix("export NEON_API_KEY="))
    result = await shell.run("fault", "add", "slow-friday")
    assert (result.status, result.out) == (1, "")
    assert "only the first user" in result.err
    assert api.control_plane.faults == ()
