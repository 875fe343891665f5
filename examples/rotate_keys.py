"""Replace every API key of an organization, and store each new key before revoking the old one.

    python examples/rotate_keys.py [ORG_ID] [--store COMMAND] [--dry-run]

COMMAND is a shell command that runs for each new key. It gets the token on stdin, which
keeps it out of process lists and logs. Its environment contains KEY_NAME, KEY_ID and PROJECT_ID.
For example:

    vault kv put "secret/neon/$KEY_NAME" token=-

Without --store, each token is written to its own file. If a step fails, or after Ctrl-C, the old
key stays valid and the program prints the remaining steps.

Without NEON_API_KEY, the program uses a local control plane and works offline. To rotate the keys
of the organization ORG_ID, set NEON_API_KEY to the personal key of an administrator. That key does
not belong to the organization and stays valid.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from subprocess import CalledProcessError

from neonctl_async import UNSET, NeonClient, NeonError
from neonctl_async.types import ApiKey, ApiKeyCreated, AuthMethod
from neonctl_local import LocalControlPlane

TO_FILE = 'umask 077 && cat > "neon-key-$KEY_ID"'
"""A command that writes the token to a file that only its owner can read.

The file is named after the key's id, because key names are not unique.
"""


@asynccontextmanager
async def connect(org_id: str | None) -> AsyncGenerator[tuple[NeonClient, str]]:
    """Connect to Neon if NEON_API_KEY is set, otherwise to a local control plane."""
    if os.environ.get("NEON_API_KEY"):
        async with NeonClient() as neon:
            yield neon, org_id or sys.exit("no organization: run rotate_keys.py ORG_ID")
    else:
        async with (
            LocalControlPlane() as control_plane,
            NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon,
        ):
            project = (await neon.projects.create(name="shop", org_id=control_plane.org_id)).project
            for name, scope in (("ci", UNSET), ("billing", UNSET), ("shop", project.id)):
                await neon.organizations.create_api_key(
                    control_plane.org_id, key_name=name, project_id=scope
                )
            yield neon, control_plane.org_id


@dataclass
class Rotation:
    """The progress of one key's rotation."""

    old: ApiKey
    new: int | None = None
    stored: bool = False
    revoked: bool = False

    def __str__(self) -> str:
        scope = f"of project {self.old.project_id}" if self.old.project_id else "whole organization"
        return f"{self.old.name} ({self.old.id}, {scope})"

    def remaining_steps(self) -> str:
        """Return the steps that remain to be done by hand."""
        if self.new is None:
            return "still valid; check the list of keys for a new one"
        if not self.stored:
            return f"still valid; {self.new} was not stored: revoke {self.new}"
        return f"{self.new} was stored; revoke {self.old.id} again"


async def store(command: str, old: ApiKey, new: ApiKeyCreated) -> None:
    """Pass the token of a key to a command that stores it."""
    variables = {"KEY_NAME": old.name, "KEY_ID": str(new.id), "PROJECT_ID": old.project_id or ""}
    process = await asyncio.create_subprocess_shell(
        command, stdin=asyncio.subprocess.PIPE, env=os.environ | variables
    )
    try:
        await process.communicate(new.key.reveal().encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise CalledProcessError(process.returncode, command)


async def rotate(neon: NeonClient, org_id: str, rotation: Rotation, command: str) -> None:
    """Create a key, store it, and revoke the old key, in this order."""
    old = rotation.old
    new = await neon.organizations.create_api_key(
        org_id, key_name=old.name, project_id=old.project_id or UNSET
    )
    rotation.new = new.id
    await store(command, old, new)
    rotation.stored = True
    await neon.organizations.revoke_api_key(org_id, old.id)
    rotation.revoked = True
    print(f"{rotation} is replaced by {new.id}")


async def rotate_all(
    neon: NeonClient, org_id: str, rotations: list[Rotation], command: str
) -> None:
    """Rotate all keys concurrently; the client keeps to the rate limits."""
    try:
        outcomes = await asyncio.gather(
            *(rotate(neon, org_id, rotation, command) for rotation in rotations),
            return_exceptions=True,  # a failure does not cancel the other rotations
        )
    finally:
        for rotation in rotations:
            if not rotation.revoked:
                print(f"{rotation}: {rotation.remaining_steps()}")
    for rotation, outcome in zip(rotations, outcomes, strict=True):
        if isinstance(outcome, NeonError | CalledProcessError):
            print(f"{rotation}: {outcome}")
        elif outcome is not None:
            raise outcome


async def main(org_id: str | None, command: str, *, dry_run: bool) -> int:
    """Rotate all keys; return 0 if every rotation succeeded."""
    async with connect(org_id) as (neon, organization):
        if (await neon.users.auth_details()).auth_method == AuthMethod.API_KEY_ORG:
            sys.exit("NEON_API_KEY is a key of the organization; use a personal key")
        keys = await neon.organizations.list_api_keys(organization)
        rotations = [Rotation(key) for key in keys]
        if dry_run:
            print(*(f"{rotation} would be rotated" for rotation in rotations), sep="\n")
            return 0
        await rotate_all(neon, organization, rotations, command)
    done = sum(rotation.revoked for rotation in rotations)
    print(f"{done} of {len(rotations)} keys were rotated")
    return 0 if done == len(rotations) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Rotate the keys of an organization.")
    parser.add_argument("org_id", nargs="?", metavar="ORG_ID")
    parser.add_argument("--store", default=TO_FILE, metavar="COMMAND")
    parser.add_argument("--dry-run", action="store_true")
    arguments = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(arguments.org_id, arguments.store, dry_run=arguments.dry_run)))
    except NeonError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
