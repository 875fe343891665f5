"""Give every key of an organization a successor, hand that over, and only then revoke the old key.

    python examples/rotate_keys.py [ORG_ID] [--store COMMAND] [--dry-run]

COMMAND is run for each new key, in a shell: it gets the token on stdin, where no list of processes
and no log shows it, and KEY_NAME, KEY_ID and PROJECT_ID in its environment. It might be

    vault kv put "secret/neon/$KEY_NAME" token=-

and is a file of its own for each key if left out. A key of which any step failed stays valid, and
what there is to do about it is told, after Ctrl-C as well. Runs against a local control plane,
offline; against the organization ORG_ID if NEON_API_KEY is set, to the personal key of an
administrator. That key is none of the organization's, and stays valid.
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
from neonctl_async.local import LocalControlPlane
from neonctl_async.types import ApiKey, ApiKeyCreated, AuthMethod

TO_A_FILE = 'umask 077 && cat > "neon-key-$KEY_ID"'
"""Readable by its owner alone. A key may share its name, and have any: so its id names the file."""


@asynccontextmanager
async def connect(org_id: str | None) -> AsyncGenerator[tuple[NeonClient, str]]:
    """The platform if there is a key for it, else a local control plane; and an organization."""
    if os.environ.get("NEON_API_KEY"):
        async with NeonClient() as neon:
            yield neon, org_id or sys.exit("name the organization: rotate_keys.py ORG_ID")
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
    """How far the rotation of a key has come."""

    old: ApiKey
    new: int | None = None
    stored: bool = False
    revoked: bool = False

    def __str__(self) -> str:
        scope = f"of project {self.old.project_id}" if self.old.project_id else "whole organization"
        return f"{self.old.name} ({self.old.id}, {scope})"

    def left_to_do(self) -> str:
        """What somebody has to look after."""
        if self.new is None:
            return "it is valid still; whether it has a successor, the list of keys tells"
        if not self.stored:
            return f"it is valid still; {self.new} was not stored: revoke that"
        return f"{self.new} was stored: revoke {self.old.id} once more"


async def store(command: str, old: ApiKey, new: ApiKeyCreated) -> None:
    """Hand the token of a key to a command that keeps it."""
    told = {"KEY_NAME": old.name, "KEY_ID": str(new.id), "PROJECT_ID": old.project_id or ""}
    process = await asyncio.create_subprocess_shell(
        command, stdin=asyncio.subprocess.PIPE, env=os.environ | told
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
    """Make a key, have it stored, revoke the old one: each step only after the one before."""
    old = rotation.old
    new = await neon.organizations.create_api_key(
        org_id, key_name=old.name, project_id=old.project_id or UNSET
    )
    rotation.new = new.id
    await store(command, old, new)
    rotation.stored = True
    await neon.organizations.revoke_api_key(org_id, old.id)
    rotation.revoked = True
    print(f"{rotation} is now {new.id}")


async def rotate_all(
    neon: NeonClient, org_id: str, rotations: list[Rotation], command: str
) -> None:
    """All at once: how many keys may be made in a second is the client's to know."""
    try:
        outcomes = await asyncio.gather(
            *(rotate(neon, org_id, rotation, command) for rotation in rotations),
            return_exceptions=True,  # one that fails takes none of the others with it
        )
    finally:
        for rotation in rotations:
            if not rotation.revoked:
                print(f"{rotation}: {rotation.left_to_do()}")
    for rotation, outcome in zip(rotations, outcomes, strict=True):
        if isinstance(outcome, NeonError | CalledProcessError):
            print(f"{rotation}: {outcome}")
        elif outcome is not None:
            raise outcome


async def main(org_id: str | None, command: str, *, dry_run: bool) -> int:
    """The exit code: 0 if every key was rotated."""
    async with connect(org_id) as (neon, organization):
        if (await neon.users.auth_details()).auth_method == AuthMethod.API_KEY_ORG:
            sys.exit("take a personal key: this one would be among those to be revoked")
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
    parser.add_argument("--store", default=TO_A_FILE, metavar="COMMAND")
    parser.add_argument("--dry-run", action="store_true")
    arguments = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(arguments.org_id, arguments.store, dry_run=arguments.dry_run)))
    except NeonError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
