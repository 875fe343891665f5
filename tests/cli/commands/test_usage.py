"""``neonctl-async usage``: what projects and branches used, and their limits."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta

import pytest

from neonctl_async.types import EndpointSpec, Project
from neonctl_local import BackgroundIntervals, Durations, LocalControlPlane, ManualClock
from tests.cli.conftest import CommandLine
from tests.cli.served import Served, served

HOURS = 10
YESTERDAY = datetime.now(UTC).date() - timedelta(days=1)
DAYS = ("--from", str(YESTERDAY), "--to", str(YESTERDAY + timedelta(days=1)))


@pytest.fixture(scope="module")
def used() -> Iterator[Served]:
    """A local control plane on which a compute of 0.25 and one of 2 units ran for ten hours."""
    clock = ManualClock(datetime.combine(YESTERDAY, time(), UTC))
    control_plane = LocalControlPlane(
        durations=Durations(default=0),
        intervals=BackgroundIntervals(suspend_after=None),
        clock=clock,
    )
    with served(control_plane) as server:
        project = server.run(
            lambda neon: neon.projects.create(name="shop", org_id=control_plane.org_id)
        )
        project_id = project.project.id
        server.run(
            lambda neon: neon.branches.create(
                project_id,
                name="preview",
                endpoints=[
                    EndpointSpec(
                        type="read_write", autoscaling_limit_min_cu=2, autoscaling_limit_max_cu=2
                    )
                ],
            )
        )
        clock.advance(HOURS * 3600)
        yield server


def project_of(server: Served) -> Project:
    org_id = server.control_plane.org_id
    [project] = server.run(lambda neon: neon.projects.list(org_id=org_id).collect())
    return server.run(lambda neon: neon.projects.get(project.id))


def test_projects_are_shown_in_the_units_of_the_bill(cli: CommandLine, used: Served) -> None:
    result = cli("usage", *DAYS, "-o", "json", at=used)
    [row] = json.loads(result.stdout)
    assert (row["project"], row["project_id"]) == ("shop", project_of(used).id)
    assert row["cu_hours"] == pytest.approx(HOURS * 2.25)
    assert row["child_branch_months"] == pytest.approx(HOURS / 744)
    assert (result.stderr, result.exit_code) == ("", 0)


def test_branches_are_shown_by_name(cli: CommandLine, used: Served) -> None:
    result = cli("usage", "list", "--by", "branch", *DAYS, "-o", "jsonl", at=used)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {row["branch"]: row["cu_hours"] for row in rows} == {
        "main": pytest.approx(HOURS * 0.25),
        "preview": pytest.approx(HOURS * 2),
    }


def test_organization_is_selected_by_its_name(cli: CommandLine, used: Served) -> None:
    name = used.organization().name
    result = cli("usage", *DAYS, "--org", name, "-o", "raw", at=used)
    assert result.stdout.split() == [project_of(used).id]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--month", "2026-13"), "'2026-13' is not a month: expected YYYY-MM"),
        (("--from", "yesterday"), "'yesterday' is not a day: expected YYYY-MM-DD"),
        (("--month", "2026-10", *DAYS), "--month contradicts --from and --to"),
        (("--by", "team"), "'team' is no"),
    ],
)
def test_wrong_options_are_usage_errors(
    cli: CommandLine, used: Served, arguments: tuple[str, ...], message: str
) -> None:
    result = cli("usage", *arguments, at=used)
    assert message in " ".join(result.stderr.split())
    assert (result.stdout, result.exit_code) == ("", 2)


def test_help_lists_the_commands(cli: CommandLine) -> None:
    shown = cli("usage", "--help").stdout
    assert "limit" in shown
    assert "list" in shown


def test_limits_are_set_shown_kept_and_removed(cli: CommandLine, used: Served) -> None:
    id = project_of(used).id
    result = cli("usage", "limit", id, "--cu-hours", "100", "--transfer-gb", "0.5", at=used)
    shown = dict(line.split("  ", 1) for line in result.stdout.splitlines())
    assert {title: value.strip() for title, value in shown.items()} == {
        "Project": id,
        "CU-hours": "100",
        "Active hours": "no limit",
        "Written GB": "no limit",
        "Transfer GB": "0.5",
        "Branch size GB": "no limit",
    }
    cli("usage", "limit", id, "--cu-hours", "0", "--branch-size-gb", "2", at=used)
    settings = project_of(used).settings
    assert settings is not None
    assert json.loads(cli("usage", "limit", id, "-o", "json", at=used).stdout) == {
        "compute_time_seconds": 0,
        "data_transfer_bytes": 500_000_000,
        "logical_size_bytes": 2_000_000_000,
    }
