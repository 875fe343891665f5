from tests.cli.conftest import CommandLine
from tests.cli.served import Served


def test_organizations_are_listed_and_shown(cli: CommandLine, quick: Served) -> None:
    organization = quick.organization()
    listed = cli("orgs", "list", at=quick).stdout.splitlines()
    assert listed[0].split() == ["ID", "Name", "Plan", "Created"]
    assert listed[1].startswith(organization.id)
    shown = cli("orgs", "get", organization.id, "-o", "raw", at=quick)
    assert (shown.stdout, shown.exit_code) == (f"{organization.id}\n", 0)
