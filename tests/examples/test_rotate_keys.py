"""The example that replaces all keys of an organization."""

import asyncio
import signal
from pathlib import Path

import pytest

from neonctl_async import UNSET, AuthenticationError, NeonClient
from neonctl_async.types import ApiKey
from neonctl_local import Fault, LocalControlPlane
from tests.support.examples import run, started
from tests.support.records import SECRETS
from tests.support.until import until

pytestmark = [pytest.mark.process, pytest.mark.scale]
EXAMPLE = "rotate_keys.py"
KEYS = "/organizations/{org_id}/api_keys"


class Organization:
    """An organization with two keys for all of its projects and one for a single project."""

    def __init__(self, control_plane: LocalControlPlane, neon: NeonClient) -> None:
        self.control_plane = control_plane
        self.neon = neon
        self.id = control_plane.org_id
        self.tokens: list[str] = []

    async def create_keys(self) -> None:
        project = (await self.neon.projects.create(org_id=self.id)).project
        for name, scope in (("ci", UNSET), ("../billing", UNSET), ("shop", project.id)):
            created = await self.neon.organizations.create_api_key(
                self.id, key_name=name, project_id=scope
            )
            self.tokens.append(created.key.reveal())

    async def keys(self) -> list[ApiKey]:
        return await self.neon.organizations.list_api_keys(self.id)

    async def count_valid(self, tokens: list[str]) -> int:
        """Return how many of the tokens belong to valid keys."""
        return [await self._is_valid(token) for token in tokens].count(True)

    async def _is_valid(self, token: str) -> bool:
        async with NeonClient(token, base_url=self.control_plane.base_url) as neon:
            try:
                await neon.projects.list().collect()
            except AuthenticationError:
                return False
        return True


@pytest.fixture
async def organization(control_plane: LocalControlPlane, neon: NeonClient) -> Organization:
    organization = Organization(control_plane, neon)
    await organization.create_keys()
    return organization


def scopes(keys: list[ApiKey]) -> list[tuple[str, str]]:
    return sorted((key.name, key.project_id or "") for key in keys)


def stored(directory: Path) -> list[tuple[str, int, str]]:
    """Return the name, permissions and content of each file."""
    return [
        (file.name, file.stat().st_mode & 0o777, file.read_text()) for file in directory.iterdir()
    ]


async def test_each_key_is_replaced_and_stored_in_a_private_file(
    organization: Organization, tmp_path: Path
) -> None:
    before = await organization.keys()
    code, output, errors = await run(
        organization.control_plane, EXAMPLE, organization.id, directory=tmp_path
    )
    assert (code, errors) == (0, "")
    assert "3 of 3 keys were rotated" in output
    assert SECRETS.findall(output.encode()) == []
    after = await organization.keys()
    assert scopes(after) == scopes(before)
    assert {key.id for key in after}.isdisjoint(key.id for key in before)
    assert await organization.count_valid(organization.tokens) == 0
    kept = await asyncio.to_thread(stored, tmp_path)
    assert {mode for _, mode, _ in kept} == {0o600}
    assert {name for name, _, _ in kept} == {f"neon-key-{key.id}" for key in after}
    assert await organization.count_valid([token for *_, token in kept]) == 3


async def test_dry_run_changes_nothing(organization: Organization) -> None:
    before = scopes(await organization.keys())
    code, output, _ = await run(organization.control_plane, EXAMPLE, organization.id, "--dry-run")
    assert (code, output.count("would be rotated")) == (0, 3)
    assert scopes(await organization.keys()) == before
    assert await organization.count_valid(organization.tokens) == 3


FAILURES = {
    "created": (Fault(route=f"POST {KEYS}", status=403, times=1), "cat", "check the list of keys"),
    "stored": (None, 'cat && [ "$KEY_NAME" != ci ]', "was not stored: revoke"),
    "revoked": (
        Fault(route=f"DELETE {KEYS}/{{key_id}}", status=403, times=1),
        "cat",
        "was stored; revoke",
    ),
}


@pytest.mark.parametrize("step", FAILURES)
async def test_key_with_a_failed_step_stays_valid_and_is_reported(
    organization: Organization, step: str
) -> None:
    fault, command, message = FAILURES[step]
    if fault is not None:
        organization.control_plane.inject(fault)
    code, output, _ = await run(
        organization.control_plane, EXAMPLE, organization.id, "--store", f"{command} > /dev/null"
    )
    assert code == 1
    assert message in output
    assert "2 of 3 keys were rotated" in output
    assert await organization.count_valid(organization.tokens) == 1


@pytest.mark.usefixtures("interruptible")
async def test_interrupt_revokes_no_key_whose_replacement_is_not_stored(
    organization: Organization,
) -> None:
    arguments = (organization.id, "--store", "exec sleep 60")
    async with started(organization.control_plane, EXAMPLE, *arguments) as process:
        await until(
            lambda: (
                [request.status for request in organization.control_plane.requests].count(200) == 8
            )
        )
        process.send_signal(signal.SIGINT)
        output, _ = await process.communicate()
    assert process.returncode == 130
    assert output.decode().count("still valid") == 3
    assert await organization.count_valid(organization.tokens) == 3


async def test_key_of_the_organization_is_rejected(organization: Organization) -> None:
    token = organization.tokens[0]
    code, _, errors = await run(
        organization.control_plane, EXAMPLE, organization.id, environment={"NEON_API_KEY": token}
    )
    assert (code, "use a personal key" in errors) == (1, True)
    assert await organization.count_valid(organization.tokens) == 3
