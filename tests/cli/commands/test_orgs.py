from tests.cli.conftest import CommandLine
from tests.cli.served import Served


def test_organizations_are_listed_and_shown(cli: CommandLine, quick: Served) -> None:
    organization = quick.organization()
    listed = cli("orgs", "list", at=quick).stdout.splitlines()
    assert listed[0].split() == ["ID", "Name", "Plan", "Created"]
    assert listed[1].startswith(organization.id)
    shown = cli("orgs", "get", organization.id, "-o", "raw", at=quick)
    assert (shown.stdout, shown.exit_code) == (f"{organization.id}\n", 0)


def test_members_of_an_organization_are_listed(cli: CommandLine, quick: Served) -> None:
    organization = quick.organization()
    header, line = cli("orgs", "members", organization.id, at=quick).stdout.splitlines()
    assert header.split() == ["ID", "Email", "Role", "Joined"]
    assert line.split()[1:3] == ["first.user@neon.invalid", "admin"]


def test_organization_is_found_by_name(cli: CommandLine, quick: Served) -> None:
    organization = quick.organization()
    for command in ("get", "members"):
        result = cli("orgs", command, organization.name, "-o", "raw", at=quick)
        assert result.exit_code == 0, result.output
    result = cli("orgs", "members", "First Organisation", at=quick)
    assert result.stderr == (
        "error: no organization of the API key's account has the name or the id "
        "'First Organisation'; its organizations: First Organization\n"
    )
    assert result.exit_code == 3
