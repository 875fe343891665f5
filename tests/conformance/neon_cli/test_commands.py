"""Neon's command line, ``neon`` 6.2.3, runs unchanged on the local control plane."""

import asyncio
from pathlib import Path

import pytest

from tests.conformance.neon_cli.commands import CONNECTING, GROUPS, NOT_RUN
from tests.conformance.neon_cli.runner import Outcome, run_groups, shell
from tests.contract.node import copy_programs, run

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(120)]


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Outcome]]:
    """The outcomes of all groups of commands."""
    return asyncio.run(run_groups(GROUPS, tmp_path_factory.mktemp("neon")))


@pytest.mark.parametrize("group", GROUPS)
def test_commands_run_unchanged(outcomes: dict[str, list[Outcome]], group: str) -> None:
    problems = [outcome.problem for outcome in outcomes[group] if outcome.problem]
    assert not problems, "\n\n".join(problems)


async def test_every_command_runs_or_has_a_reason(tmp_path: Path) -> None:
    copy_programs(Path(__file__).parent, tmp_path)
    commands = set(await run(tmp_path, "names.mjs"))
    run_here = {
        command
        for step in (*(step for steps in GROUPS.values() for step in steps), *CONNECTING)
        for command in commands
        if f"{step.command} ".startswith(f"{command} ")
    }
    assert run_here | set(NOT_RUN) == commands
    assert not run_here & set(NOT_RUN)


@pytest.mark.postgres
async def test_commands_connect_to_real_databases(tmp_path: Path, require_postgres: None) -> None:
    del require_postgres
    async with shell(tmp_path / "postgres", postgres=True) as ready:
        outcomes = await ready.run(CONNECTING, **ready.connection)
    problems = [outcome.problem for outcome in outcomes if outcome.problem]
    assert not problems, "\n\n".join(problems)
