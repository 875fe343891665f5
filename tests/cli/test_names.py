"""Names instead of ids: of projects, branches and computes."""

import asyncio
from typing import TYPE_CHECKING, cast

import msgspec
import pytest

from neonctl_async import NotFoundError
from neonctl_async.cli import names
from neonctl_async.cli.output import Output, Screen
from neonctl_async.cli.session import CommandSession
from neonctl_async.types import Branch
from tests.cli.conftest import CommandLine
from tests.cli.served import Served

if TYPE_CHECKING:
    from neonctl_async import NeonClient


def test_project_and_branch_are_found_by_name(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project("by-name").project.id
    branch_id = quick.branch(project_id, "feature/login").branch.id
    result = cli("branches", "get", "feature/login", "-p", "by-name", "-o", "json", at=quick)
    assert result.stderr == ""
    branch = msgspec.json.decode(result.stdout, type=Branch)
    assert (branch.id, branch.project_id) == (branch_id, project_id)


def test_name_must_match_exactly(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    quick.branch(project_id, "preview-1")
    quick.branch(project_id, "preview-2")
    result = cli("branches", "get", "preview", "-p", project_id, at=quick)
    assert result.stderr == (
        f"error: no branch of project {project_id} has the name or the id 'preview'; "
        "its branches: main, preview-1, preview-2\n"
    )
    assert (result.stdout, result.exit_code) == ("", 3)


def test_of_many_names_only_close_ones_are_listed(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    for number in range(20):
        quick.branch(project_id, f"preview-{number}")
    for wanted, hint in (("preview-12x", "; close names: preview-12, "), ("Quetzalcoatl", "'\n")):
        result = cli("branches", "get", wanted, "-p", project_id, at=quick)
        assert hint in result.stderr
        assert result.stderr.count("preview-") <= 4
        assert result.exit_code == 3


def test_ambiguous_name_lists_the_ids(cli: CommandLine, quick: Served) -> None:
    ids = {quick.project("twice").project.id for _ in range(2)}
    result = cli("branches", "list", "-p", "twice", at=quick)
    message, _, listed = result.stderr.strip().rpartition(": ")
    assert message.endswith("are named 'twice': use the id of one of them")
    assert set(listed.split(", ")) == ids
    assert result.exit_code == 2


def test_id_needs_no_request_of_its_own(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    project_id, branch_id = created.project.id, created.branch.id
    before = quick.control_plane.requests_served
    cli("branches", "get", branch_id, "-p", project_id, at=quick)
    assert quick.control_plane.requests_served == before + 1


@pytest.mark.parametrize("name", ["br-pull-request-12", "br-late-frost-12345678"])
def test_name_in_the_form_of_an_id_is_found(cli: CommandLine, quick: Served, name: str) -> None:
    project_id = quick.project().project.id
    branch_id = quick.branch(project_id, name).branch.id
    result = cli("branches", "delete", name, "-p", project_id, "-o", "raw", at=quick)
    assert (result.stdout, result.exit_code) == (f"{branch_id}\n", 0)


def test_project_and_branch_may_both_be_named_like_ids(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project("late-frost-12345678").project.id
    branch_id = quick.branch(project_id, "br-late-frost-12345678").branch.id
    arguments = ("branches", "get", "br-late-frost-12345678", "-p", "late-frost-12345678")
    result = cli(*arguments, "-o", "raw", at=quick)
    assert (result.stdout, result.exit_code) == (f"{branch_id}\n", 0)


def test_id_wins_over_a_name(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    quick.branch(created.project.id, created.branch.id)
    result = cli("branches", "get", created.branch.id, "-p", created.project.id, at=quick)
    assert result.stdout.splitlines()[1].split() == ["Name", created.branch.name]


def test_missing_id_is_reported_by_neon(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    result = cli("branches", "get", "br-late-frost-12345679", "-p", project_id, at=quick)
    assert "404 Not Found" in result.stderr
    assert result.exit_code == 3


def test_parent_is_found_by_name(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    parent_id = quick.branch(project_id, "staging").branch.id
    arguments = ("branches", "create", "--name", "child", "--parent", "staging", "-p", project_id)
    cli(*arguments, at=quick)
    branches = quick.run(lambda neon: neon.branches.list(project_id, search="child").collect())
    assert [one.parent_id for one in branches] == [parent_id]


def test_missing_project_names_all_ways_to_select_one(cli: CommandLine, quick: Served) -> None:
    result = cli("branches", "list", at=quick)
    assert result.stderr == (
        "error: no project: set --project or NEON_PROJECT_ID, or select one for this directory "
        "with `neonctl-async set-context --project-id PROJECT_ID`\n"
    )
    assert (result.stdout, result.exit_code) == ("", 2)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("branches", "create", "--parent", ""), "--parent"),
        (("branches", "create", "--parent="), "--parent"),
        (("branches", "create", "--expires-in", ""), "--expires-in"),
        (("branches", "list", "-p", ""), "--project"),
        (("operations", "wait", "x", ""), "OPERATION_ID"),
        (("projects", "list", "--api-host", ""), "--api-host"),
        (("projects", "list", "--output", ""), "--output"),
    ],
    ids=" ".join,
)
def test_empty_value_is_a_usage_error(
    cli: CommandLine, quick: Served, arguments: tuple[str, ...], name: str
) -> None:
    result = cli(*arguments, at=quick)
    assert result.stderr == f"error: {name} is empty: set a value, or leave it out\n"
    assert (result.stdout, result.exit_code) == ("", 2)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("branches", "get", ""), "BRANCH"),
        (("branches", "delete", "--no-wait", ""), "BRANCH"),
        (("branches", "rename", "main", ""), "NEW_NAME"),
        (("api-keys", "revoke", ""), "KEY_ID"),
        (("wait", "--for", ""), "--for"),
    ],
    ids=" ".join,
)
def test_empty_value_that_is_required_cannot_be_left_out(
    cli: CommandLine, quick: Served, arguments: tuple[str, ...], name: str
) -> None:
    result = cli(*arguments, at=quick)
    assert result.stderr == f"error: {name} is empty: set a value\n"
    assert (result.stdout, result.exit_code) == ("", 2)


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (
            ("branches", "list", "shop"),
            "pass it with --project; see neonctl-async branches list --help",
        ),
        (
            ("roles", "list", "shop"),
            "pass it with --branch or --project; see neonctl-async roles list --help",
        ),
        (("projects", "list", "shop"), "see neonctl-async projects list --help"),
    ],
    ids=["with a project", "with a branch", "without one"],
)
def test_argument_that_no_command_takes_is_one_line(
    cli: CommandLine, quick: Served, arguments: tuple[str, ...], remedy: str
) -> None:
    result = cli(*arguments, at=quick)
    assert result.stderr == f"error: unexpected argument 'shop': {remedy}\n"
    assert (result.stdout, result.exit_code) == ("", 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("branches", "get", "--branch", "preview"),
            "--branch is no option of this command: pass BRANCH",
        ),
        (
            ("projects", "get", "--project=shop"),
            "--project is no option of this command: pass PROJECT",
        ),
    ],
    ids=["two words", "with an equals sign"],
)
def test_option_that_is_an_argument_is_one_line(
    cli: CommandLine, quick: Served, arguments: tuple[str, ...], message: str
) -> None:
    result = cli(*arguments, at=quick)
    usage = f"see neonctl-async {arguments[0]} {arguments[1]} --help"
    assert result.stderr == f"error: {message} as an argument; {usage}\n"
    assert (result.stdout, result.exit_code) == ("", 2)


def test_argument_after_two_dashes_may_look_like_an_option(cli: CommandLine, quick: Served) -> None:
    result = cli("branches", "get", "-p", quick.project().project.id, "--", "--branch", at=quick)
    assert "no branch of project" in result.stderr
    assert result.exit_code == 3


async def test_command_does_not_run_again_after_a_change() -> None:
    session = CommandSession(Screen(Output.RAW), cast("NeonClient", None))
    runs = 0

    async def work() -> None:
        nonlocal runs
        runs += 1
        await names.project_id(session, "late-frost-12345678")
        await session.send(asyncio.sleep(0))
        raise NotFoundError(status=404, message="gone", method="GET", path="/")

    with pytest.raises(NotFoundError):
        await names.with_names(session, work)
    assert runs == 1
