"""The server prints, logs and stores no key and no password."""

import asyncio
import logging
import re
from pathlib import Path

import pytest

from neonctl_async import EndpointSpec, NeonClient
from neonctl_local import Durations, LocalControlPlane
from tests.support.records import SECRETS
from tests.support.server_process import serving


async def use(base_url: str, key: str) -> None:
    """Create and read every kind of secret."""
    async with NeonClient(key, base_url=base_url) as neon:
        created = await neon.projects.create(name="secrets", wait=True)
        branch = await neon.branches.create(
            created.project.id, name="b", endpoints=[EndpointSpec(type="read_write")], wait=True
        )
        made = await neon.api_keys.create(key_name="another")
        [connection] = branch.connection_uris
        for secret in (made.key, connection.connection_uri):
            assert SECRETS.search(secret.reveal().encode()), "the test knows what to look for"
        role = f"/projects/{created.project.id}/branches/{branch.branch.id}/roles/neondb_owner"
        for method, action in (("GET", "reveal_password"), ("POST", "reset_password")):
            shown = await neon.request(method, f"{role}/{action}")
            assert SECRETS.search(str(shown).encode())
        await use_credential(neon, f"/projects/{created.project.id}/branches/{branch.branch.id}")


async def use_credential(neon: NeonClient, branch: str) -> None:
    """Create, reveal and rotate a credential of a branch."""
    body = {"scopes": ["storage:read"], "principal_type": "user"}
    issued = await neon.request("POST", f"{branch}/credentials", body=body)
    [token_id] = set(re.findall("nak_live_[0-9a-f]{32}", str(issued)))
    path = f"{branch}/credentials/{token_id}"
    revealed = await neon.request("POST", f"{path}/reveal")
    rotated = await neon.request("POST", f"{path}/rotate")
    for response in (issued, revealed, rotated):
        assert len(SECRETS.findall(str(response).encode())) == 2


def stored(directory: Path) -> bytes:
    """Return the content of all files in a directory."""
    return b"".join(file.read_bytes() for file in directory.iterdir())


def rights_of_others(directory: Path) -> set[int]:
    return {file.stat().st_mode & 0o077 for file in directory.iterdir()}


async def test_file_and_log_hold_no_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    durations = Durations(default=0.01)
    async with LocalControlPlane(data=tmp_path / "plane.db", durations=durations) as control_plane:
        await use(control_plane.base_url, control_plane.api_key)
        files = await asyncio.to_thread(stored, tmp_path)
    assert b"neondb_owner" in files
    assert SECRETS.findall(files) == []
    assert "reset_password" in caplog.text
    assert SECRETS.findall(caplog.text.encode()) == []


async def test_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    async with LocalControlPlane(data=tmp_path / "plane.db"):
        rights = await asyncio.to_thread(rights_of_others, tmp_path)
    assert rights == {0}


@pytest.mark.long
@pytest.mark.process
async def test_command_prints_the_first_key_and_no_other_secret() -> None:
    async with serving("--duration", "0.01") as served:
        await use(served.base_url, served.api_key)
        _status, out, err = await served.end()
    assert "reset_password" in err
    assert SECRETS.findall((out + err).encode()) == []
