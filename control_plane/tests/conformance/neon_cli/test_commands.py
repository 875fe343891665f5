"""Neon's command line, ``neon`` 6.2.3, runs unchanged on the local control plane."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from control_plane.tests.conformance.neon_cli.commands import CONNECTING, GROUPS, NOT_RUN
from control_plane.tests.conformance.neon_cli.runner import Outcome, shell
from neonctl_local import PostgresSettings
from tests.contract.node import copy_programs, run
from tests.support.names import resolve
from tests.support.pages import TEXTS, code_blocks, names_side_by_side
from tests.support.postgres import skip_without_postgres

DOMAIN = "db.localhost"
ADDRESS = "127.0.0.2"
"""An address with a free port 5432, also on a machine that has a Postgres on 127.0.0.1."""
RESOLVE = Path(__file__).parent / "resolve.cjs"
"""Lets names below DOMAIN resolve to ADDRESS in Node.js, as they do on most machines."""

pytestmark = pytest.mark.conformance


@pytest.fixture(scope="session")
def postgres() -> None:
    """Skip the tests on a machine without Postgres."""
    skip_without_postgres()


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of all commands of the command line."""
    folder = tmp_path_factory.mktemp("names")
    copy_programs(Path(__file__).parent, folder)
    return set(asyncio.run(run(folder, "names.mjs")))


@pytest.mark.parametrize("group", GROUPS)
async def test_commands_run_unchanged(tmp_path: Path, group: str) -> None:
    async with shell(tmp_path) as ready:
        await asyncio.to_thread(ready.create_repository)
        check(await ready.run(GROUPS[group]))


def test_every_command_runs_or_has_a_reason(commands: set[str]) -> None:
    steps = [*CONNECTING, *(step for steps in GROUPS.values() for step in steps)]
    run_here = {
        command
        for command in commands
        if any(f"{step.command} ".startswith(f"{command} ") for step in steps)
    }
    assert run_here | set(NOT_RUN) == commands
    assert not run_here & set(NOT_RUN)


def test_page_for_users_of_neon_lists_every_command(commands: set[str]) -> None:
    rows = names_side_by_side(TEXTS["docs/command-line.md"], "## Coming from neon")
    listed = [name for theirs, _ in rows for name in theirs]
    assert sorted(listed) == sorted(commands)


@pytest.mark.postgres
async def test_commands_of_the_page_work(tmp_path: Path, postgres: None) -> None:
    del postgres
    text = TEXTS["docs/local-control-plane.md"]
    blocks = [block for _, block in code_blocks(text, 'console title="neon"')]
    commands = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    async with shell(tmp_path, postgres=True) as ready:
        status, output = await ready.run_script(commands)
    assert status == 0, output
    assert "orders" in output


@pytest.mark.postgres
async def test_commands_connect_to_the_hosts_of_computes(
    tmp_path: Path, open_directory: Path, postgres: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    del postgres
    resolve(monkeypatch, DOMAIN, ADDRESS)
    settings = PostgresSettings(domain=DOMAIN, port=5432)
    data = open_directory / "data.db"
    plane = {"host": ADDRESS, "data": data, "postgres": settings, "history": True}
    async with shell(tmp_path, **plane) as ready:
        check(
            await ready.run(
                CONNECTING,
                PGHOSTADDR=ADDRESS,
                NODE_EXTRA_CA_CERTS=str(data.with_name("data.db.d") / "ca.pem"),
                NODE_OPTIONS=f"--require {RESOLVE}",
            )
        )


def check(outcomes: Sequence[Outcome]) -> None:
    problems = [outcome.problem for outcome in outcomes if outcome.problem]
    assert not problems, "\n\n".join(problems)
