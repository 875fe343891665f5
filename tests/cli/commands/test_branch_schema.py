"""Compare the schemas of branches."""

import asyncpg
import pytest

from neonctl_async import NeonClient
from neonctl_async.cli.commands.branch_schema import coloured
from neonctl_async.types import BranchCreated
from neonctl_local import Durations, LocalControlPlane
from tests.cli.conftest import CommandLine
from tests.cli.served import Served, served
from tests.support.databases import READ_WRITE
from tests.support.postgres import skip_without_postgres


@pytest.mark.parametrize("base", [(), ("--base", "main"), ("--base", "^parent")])
def test_equal_schemas_have_no_difference(
    cli: CommandLine, quick: Served, base: tuple[str, ...]
) -> None:
    project_id = quick.project().project.id
    quick.branch(project_id, "preview")
    command = ("branches", "schema-diff", "preview", "-p", project_id, *base)
    result = cli(*command, at=quick)
    assert (result.stdout, result.exit_code) == ("", 0)
    assert result.stderr == "the schemas of database neondb are equal\n"
    assert cli(*command, "-o", "json", at=quick).output == '{\n  "diff": ""\n}\n'


def test_branch_is_compared_with_its_earlier_state(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    command = ("branches", "schema-diff", "main", "--base", "^self", "-p", created.project.id)
    result = cli(*command, "--at", created.branch.created_at.isoformat(), at=quick)
    assert result.exit_code == 0, result.output
    refused = cli(*command, at=quick)
    assert refused.stderr == "error: to compare a branch with its own earlier state, set --at\n"
    assert refused.exit_code == 2


def test_root_branch_needs_a_base(cli: CommandLine, quick: Served) -> None:
    created = quick.project()
    result = cli("branches", "schema-diff", "main", "-p", created.project.id, at=quick)
    assert result.stderr == (
        f"error: branch {created.branch.id} has no parent: set --base to another branch\n"
    )
    assert result.exit_code == 2


def test_unknown_database_is_an_error(cli: CommandLine, quick: Served) -> None:
    project_id = quick.project().project.id
    quick.branch(project_id, "preview")
    command = ("branches", "schema-diff", "preview", "-p", project_id, "--database", "orders")
    result = cli(*command, at=quick)
    assert "'orders'" in result.stderr
    assert (result.stdout, result.exit_code) == ("", 3)


def test_lines_of_a_difference_are_coloured_and_hide_control_characters() -> None:
    diff = "--- a\n+++ b\n@@ -1 +1 @@\n same\n-old\n+new \x1b[2J\n"
    text = coloured(diff)
    assert text.plain == diff.rstrip().replace("\x1b", "\\x1b")
    assert [style for line, style in text.parts if line != "\n"] == [
        *("red", "green", "dim", "", "red", "green")
    ]


@pytest.mark.long
@pytest.mark.postgres
@pytest.mark.process
def test_new_table_of_a_branch_is_an_addition(cli: CommandLine) -> None:
    skip_without_postgres()

    async def create_table(neon: NeonClient) -> BranchCreated:
        project = await neon.projects.create(wait=True)
        created = await neon.branches.create(
            project.project.id, name="preview", endpoints=[READ_WRITE], wait="connect"
        )
        connection = await asyncpg.connect(created.connection_uri.asyncpg)
        await connection.execute("CREATE TABLE orders (item text)")
        await connection.close()
        return created

    with served(LocalControlPlane(postgres=True, durations=Durations(default=0))) as real:
        project_id = real.run(create_table).branch.project_id
        result = cli("branches", "schema-diff", "preview", "-p", project_id, at=real)
        assert "+CREATE TABLE public.orders (" in result.stdout.splitlines()
        assert (result.stderr, result.exit_code) == ("", 0)
