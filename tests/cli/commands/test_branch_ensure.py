import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from neonctl_async.models.secret import decode_hook
from neonctl_async.types import EnsuredBranch
from tests.cli.conftest import CommandLine
from tests.cli.served import Served


def decode(text: str) -> EnsuredBranch:
    return msgspec.json.decode(text, type=EnsuredBranch, dec_hook=decode_hook)


def test_first_run_creates_the_branch_and_the_second_one_adopts_it(
    cli: CommandLine, quick: Served
) -> None:
    id = quick.project().project.id
    command = ("branches", "ensure", "preview", "-p", id, "--parent", "main")
    first = cli(*command, at=quick)
    assert first.stdout.splitlines()[0].split() == ["Result", "created"]
    assert "(--show-secrets shows it)" in first.stdout
    second = cli(*command, at=quick)
    assert second.stdout.splitlines()[0].split() == ["Result", "adopted"]
    assert "Connection URI" not in second.stdout
    raw = cli(*command, "--output", "raw", at=quick)
    assert raw.stdout.strip() in first.stdout
    assert (first.exit_code, second.exit_code, raw.exit_code) == (0, 0, 0)


def test_json_contains_created(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    command = ("branches", "ensure", "preview", "-p", id, "--expires-in", "3600", "-o", "json")
    first, second = (decode(cli(*command, at=quick).stdout) for _ in range(2))
    assert (first.created, second.created) == (True, False)
    assert first.branch.id == second.branch.id
    assert first.connection_uris[0].connection_uri.reveal() == "**********"
    assert first.branch.expires_at is not None
    left = first.branch.expires_at - datetime.now(UTC)
    assert timedelta(0) < left <= timedelta(hours=1)


def test_secrets_are_shown_on_request(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    shown = cli("branches", "ensure", "preview", "-p", id, "--show-secrets", at=quick)
    assert "postgresql://" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "difference"),
    [
        (("main",), "it is the default branch of the project"),
        (
            ("preview", "--protected"),
            "its protection (--protected) is False instead of True. Nothing was changed: leave out",
        ),
        (("preview", "--expires-in", "60"), "it never expires"),
    ],
)
def test_differing_branch_is_an_error(
    cli: CommandLine, quick: Served, arguments: tuple[str, ...], difference: str
) -> None:
    id = quick.project().project.id
    cli("branches", "ensure", "preview", "--no-compute", "-p", id, at=quick)
    result = cli("branches", "ensure", *arguments, "--no-compute", "-p", id, at=quick)
    assert result.stderr.startswith("error: branch '")
    assert difference in result.stderr
    assert (result.stdout, result.exit_code) == ("", 3)


def test_missing_parent_is_an_error(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    result = cli("branches", "ensure", "preview", "--parent", "stagin", "-p", id, at=quick)
    assert "has the name or the id 'stagin'; its branches: main" in result.stderr
    assert result.exit_code == 3


def test_adopted_branch_that_is_not_ready_in_time_is_reported(
    cli: CommandLine, slow: Served
) -> None:
    id = slow.project().project.id
    command = ("branches", "ensure", "preview", "-p", id, "-o", "raw")
    created = cli(*command, "--no-wait", at=slow)
    result = cli(*command, "--timeout", "0.01", at=slow)
    branch_id = created.stdout.strip()
    assert result.stdout.strip() == branch_id
    assert result.stderr.splitlines()[0] == f"branch {branch_id} was adopted"
    assert result.exit_code == 4


def test_both_expiries_are_a_usage_error(cli: CommandLine, quick: Served) -> None:
    result = cli(
        *("branches", "ensure", "preview", "-p", "x"),
        *("--expires-in", "60", "--expires-at", "2099-01-01T00:00:00Z"),
        at=quick,
    )
    assert result.exit_code == 2


def test_compute_has_the_limits_of_its_cost(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    command = ("branches", "ensure", "preview", "-p", id, "--suspend-timeout", "300", "-o", "json")
    [compute] = decode(cli(*command, "--cu", "0.25-1", at=quick).stdout).endpoints
    assert (compute.autoscaling_limit_min_cu, compute.autoscaling_limit_max_cu) == (0.25, 1)
    assert compute.suspend_timeout_seconds == 300
    assert not decode(cli(*command, "--cu", "0.25-1", at=quick).stdout).created
    assert "its largest size (--cu)" in cli(*command, "--cu", "4", at=quick).stderr


def test_ensured_branch_may_have_no_data(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    command = ("branches", "ensure", "empty", "-p", id, "--schema-only", "-o", "json")
    assert decode(cli(*command, at=quick).stdout).branch.init_source == "schema-only"


def test_difference_of_a_compute_names_the_option(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    cli("branches", "ensure", "preview", "-p", id, at=quick)
    command = ("branches", "ensure", "preview", "-p", id, "--cu", "2", "--suspend-timeout", "5m")
    error = cli(*command, at=quick).stderr
    assert "its smallest size (--cu) is 0.25 instead of 2.0" in error
    assert "its suspend timeout in seconds (--suspend-timeout) is " in error
    assert "autoscaling" not in error


@pytest.mark.parametrize("verb", ["create", "ensure"])
def test_name_is_an_argument_or_an_option(cli: CommandLine, quick: Served, verb: str) -> None:
    command = ("branches", verb, "-p", quick.project().project.id, "-o", "json")
    for number, given in enumerate((["one"], ["--name", "two"])):
        created = json.loads(cli(*command, *given, at=quick).stdout)
        assert created["branch"]["name"] == ("one", "two")[number]
    twice = cli(*command, "one", "--name", "two", at=quick)
    assert twice.stderr == "error: the name is set twice, as 'one' and as --name 'two'\n"
    assert twice.exit_code == 2


def test_ensure_needs_a_name(cli: CommandLine, quick: Served) -> None:
    result = cli("branches", "ensure", "-p", quick.project().project.id, at=quick)
    assert result.stderr.startswith("error: no name: ")
    assert result.exit_code == 2
