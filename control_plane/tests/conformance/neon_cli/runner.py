"""Runs Neon's command line in a folder that is linked to a project of a local control plane."""

import asyncio
import os
import shlex
import subprocess
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from control_plane.tests.conformance.neon_cli.commands import Step
from neonctl_async import NeonClient
from neonctl_local import Durations, LocalControlPlane
from tests.contract.description import FOLDER
from tests.contract.node import node

PROGRAM = FOLDER / "node_modules" / "neon" / "dist" / "cli.js"
PROGRAMS = FOLDER / "node_modules" / ".bin"
COMPILED = FOLDER / "compiled"
"""The cache of compiled modules, without which each command starts twice as slowly."""


class Outcome(NamedTuple):
    """The exit status and the output of a command."""

    step: Step
    status: int
    output: str

    @property
    def problem(self) -> str | None:
        """The difference from the expected outcome, or None."""
        if self.status == self.step.status and self.step.output in self.output:
            return None
        return (
            f"neon {self.step.command}: expected status {self.step.status} and "
            f"{self.step.output!r}, got status {self.status} and:\n{self.output}"
        )


class Shell:
    """A folder that is linked to a project, and runs commands."""

    def __init__(self, folder: Path, values: Mapping[str, str], base_url: str) -> None:
        self._folder = folder
        self._values = values
        # The command line cannot store a profile in a new directory.
        (folder / "home" / ".config" / "neon").mkdir(parents=True)
        (folder / "work").mkdir()
        (folder / "work" / "node_modules").symlink_to(FOLDER / "node_modules")
        context = {"projectId": values["project"], "orgId": values["org"]}
        (folder / "work" / ".neon").write_bytes(msgspec.json.encode(context))
        self._environment = {
            "CI": "true",
            "HOME": str(folder / "home"),
            "NEON_API_HOST": base_url,
            "NEON_API_KEY": values["key"],
            "NODE_COMPILE_CACHE": str(COMPILED),
            "NO_COLOR": "1",
            "PATH": f"{PROGRAMS}:{Path(node()).parent}:{os.environ['PATH']}",
        }

    def create_repository(self) -> None:
        """Create a git repository with a commit on the branch ``main``."""
        author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
        for command in (
            ("init", "--quiet", "--initial-branch", "main"),
            (*author, "commit", "--quiet", "--allow-empty", "--message", "Start"),
        ):
            subprocess.run(("git", *command), cwd=self._folder / "work", check=True)

    async def run(self, steps: Sequence[Step], **environment: str) -> list[Outcome]:
        """Run commands one after another."""
        return [await self._run(step, environment) for step in steps]

    async def run_script(self, commands: Iterable[str]) -> tuple[int, str]:
        """Run shell commands up to the first one that fails. Return its status and all output."""
        script = "\n".join(commands).replace("org-…", self._values["org"])
        return await self._start("sh", "-ec", script)

    async def _run(self, step: Step, environment: Mapping[str, str]) -> Outcome:
        words = (word.format_map(self._values) for word in shlex.split(step.command))
        command = (node(), str(PROGRAM), "--no-analytics", *words)
        return Outcome(step, *await self._start(*command, **environment))

    async def _start(self, *command: str, **environment: str) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=self._folder / "work",
            env=self._environment | environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        return process.returncode or 0, output.decode()


# Any: the keyword arguments of LocalControlPlane.
@asynccontextmanager
async def shell(folder: Path, **settings: Any) -> AsyncGenerator[Shell]:
    """Start a local control plane with one project of the first organization."""
    durations = Durations(default=0.0)
    async with LocalControlPlane(durations=durations, **settings) as control_plane:
        async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
            created = await neon.projects.create(
                name="shop", org_id=control_plane.org_id, wait=True
            )
        values = {
            "key": control_plane.api_key,
            "org": control_plane.org_id,
            "project": created.project.id,
            "created": created.branch.created_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        yield await asyncio.to_thread(Shell, folder, values, control_plane.base_url)
