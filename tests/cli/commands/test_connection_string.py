import msgspec
import pytest

from neonctl_async import ConnectionUri, Secret
from neonctl_async.types import ProjectCreated
from tests.cli.conftest import CommandLine
from tests.cli.served import Served
from tests.cli.test_command import example_of


@pytest.fixture
def created(quick: Served, monkeypatch: pytest.MonkeyPatch) -> ProjectCreated:
    """A project with the branch preview, which is the project of the commands."""
    created = quick.project()
    quick.branch(created.project.id)
    monkeypatch.setenv("NEON_PROJECT_ID", created.project.id)
    return created


def test_uri_of_the_default_branch_is_printed_with_the_password(
    cli: CommandLine, quick: Served, created: ProjectCreated
) -> None:
    result = cli("connection-string", at=quick)
    assert (result.stdout, result.stderr) == (f"{created.connection_uri.reveal()}\n", "")
    assert result.exit_code == 0
    assert result.stdout == cli("connection-string", "-o", "raw", at=quick).stdout


def test_branch_can_be_a_name_or_an_id(
    cli: CommandLine, quick: Served, created: ProjectCreated
) -> None:
    by_name = cli("connection-string", "main", at=quick).stdout
    assert by_name == cli("connection-string", created.branch.id, at=quick).stdout
    missing = cli("connection-string", "missing", at=quick)
    assert missing.stderr.startswith("error: no branch of project")
    assert (missing.stdout, missing.exit_code) == ("", 3)
    missing = cli("connection-string", "--database", "missing", at=quick)
    assert missing.stderr.endswith("has no database 'missing': it has neondb\n")
    assert (missing.stdout, missing.exit_code) == ("", 3)


def test_example_prints_the_form_of_a_driver(
    cli: CommandLine, quick: Served, created: ProjectCreated
) -> None:
    result = cli(*example_of(cli, ("connection-string",)), at=quick)
    assert result.stdout == f"{created.connection_uri.as_pooled().asyncpg}\n"


@pytest.mark.parametrize(
    ("driver", "scheme"),
    [
        ("psycopg", "postgresql://"),
        ("sqlalchemy-asyncpg", "postgresql+asyncpg://"),
        ("sqlalchemy-psycopg", "postgresql+psycopg://"),
        ("serverless", "postgresql://"),
    ],
)
def test_form_of_each_driver(
    cli: CommandLine, quick: Served, created: ProjectCreated, driver: str, scheme: str
) -> None:
    printed = cli("connection-string", "--driver", driver, at=quick).stdout
    assert printed.startswith(f"{scheme}{created.connection_uri.role}:")


def test_role_database_and_compute_can_be_chosen(
    cli: CommandLine, quick: Served, created: ProjectCreated
) -> None:
    ids = created.project.id, created.branch.id
    quick.run(lambda neon: neon.roles.create(*ids, name="clerk"))
    quick.run(lambda neon: neon.databases.create(*ids, name="reports", owner_name="clerk"))
    several = cli("connection-string", at=quick)
    assert several.stderr.endswith("has 2 databases, neondb, reports: choose one\n")
    assert (several.stdout, several.exit_code) == ("", 2)
    chosen = ("--database", "reports", "--endpoint", created.endpoints[0].id)
    uri = ConnectionUri(cli("connection-string", *chosen, at=quick).stdout.strip())
    assert (uri.database, uri.role) == ("reports", "clerk")
    owner = created.connection_uri.role
    uri = ConnectionUri(cli("connection-string", *chosen, "--role", owner, at=quick).stdout.strip())
    assert (uri.database, uri.role) == ("reports", owner)


def test_json_contains_the_parts(cli: CommandLine, quick: Served, created: ProjectCreated) -> None:
    printed = cli("connection-string", "-o", "json", "--pooled", at=quick).stdout
    uri = created.connection_uri.as_pooled()
    assert msgspec.json.decode(printed) == {
        "connection_string": uri.reveal(),
        "host": uri.host,
        "port": 5432,
        "database": "neondb",
        "role": uri.role,
        "pooled": True,
    }


def test_other_commands_hide_the_uri(
    cli: CommandLine, quick: Served, created: ProjectCreated
) -> None:
    shown = cli("branches", "create", "-o", "json", at=quick)
    assert isinstance(created.connection_uri, Secret)
    assert '"connection_uri": "**********"' in shown.stdout
