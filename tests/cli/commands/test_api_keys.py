import re

import msgspec
import pytest

from neonctl_async.types import ApiKey
from tests.cli.conftest import CommandLine
from tests.cli.served import Served
from tests.support.records import SECRETS

WARNING = re.compile(r"store the token of key \d+ now: it cannot be shown again\n")


def listed(cli: CommandLine, at: Served, *owner: str) -> dict[str, ApiKey]:
    result = cli("api-keys", "list", *owner, "--output", "json", at=at)
    return {key.name: key for key in msgspec.json.decode(result.stdout, type=list[ApiKey])}


def test_key_printed_alone_on_standard_output_works(cli: CommandLine, quick: Served) -> None:
    result = cli("api-keys", "create", "raw", "--output", "raw", at=quick)
    assert SECRETS.fullmatch(result.stdout_bytes.strip())
    assert WARNING.fullmatch(result.stderr)
    assert result.exit_code == 0
    key = result.stdout.strip()
    assert cli("projects", "list", at=quick, NEON_API_KEY=key).exit_code == 0


@pytest.mark.parametrize("output", ["table", "json", "jsonl"])
def test_created_key_is_shown_once_with_a_warning(
    cli: CommandLine, quick: Served, output: str
) -> None:
    result = cli("api-keys", "create", output, "--output", output, at=quick)
    [_token] = SECRETS.findall(result.stdout_bytes)
    assert WARNING.fullmatch(result.stderr)
    assert not SECRETS.search(cli("api-keys", "list", at=quick).output_bytes)


def test_organization_keys_are_separate_from_personal_keys(cli: CommandLine, quick: Served) -> None:
    org = ("--org", quick.organization().name)
    assert cli("api-keys", "create", "of-the-org", *org, at=quick).exit_code == 0
    assert "of-the-org" in listed(cli, quick, *org)
    assert "of-the-org" not in listed(cli, quick)


def test_project_key_is_created_by_its_organization(cli: CommandLine, quick: Served) -> None:
    org_id = quick.control_plane.org_id
    created = quick.run(lambda neon: neon.projects.create(name="scoped", org_id=org_id))
    scope = ("--project", created.project.id)
    assert cli("api-keys", "create", "scoped", *scope, at=quick).exit_code == 0
    assert list(listed(cli, quick, *scope)) == ["scoped"]
    key = listed(cli, quick, "--org", org_id)["scoped"]
    assert key.project_id == created.project.id
    assert cli("api-keys", "revoke", str(key.id), *scope, at=quick).exit_code == 0
    assert listed(cli, quick, *scope) == {}


def test_project_without_an_organization_has_no_keys(cli: CommandLine, quick: Served) -> None:
    id = quick.project().project.id
    result = cli("api-keys", "create", "x", "--project", id, at=quick)
    assert "belongs to no organization" in result.stderr
    assert (result.stdout, result.exit_code) == ("", 2)


def test_name_of_a_key_is_no_id(cli: CommandLine, quick: Served) -> None:
    result = cli("api-keys", "revoke", "deploys", at=quick, COLUMNS="200")
    assert "'deploys' is not the id of a key: expected a number; `neonctl-async api-keys" in (
        result.stderr
    )
    assert result.exit_code == 2


def test_revoked_key_no_longer_works(cli: CommandLine, quick: Served) -> None:
    token = cli("api-keys", "create", "gone", "-o", "raw", at=quick).stdout.strip()
    id = listed(cli, quick)["gone"].id
    assert cli("api-keys", "revoke", str(id), "-o", "raw", at=quick).stdout.strip() == str(id)
    result = cli("projects", "list", at=quick, NEON_API_KEY=token)
    assert "401 Unauthorized" in result.stderr
    assert result.exit_code == 3
