"""Runs the shell steps of a GitHub workflow on this machine."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec

PACKAGE = str(Path(__file__).parents[2])
SHELL = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
"""The shell that GitHub uses for ``shell: bash``."""


class Step(msgspec.Struct, frozen=True):
    """A step: an action (``uses``) or a shell script (``run``)."""

    run: str | None = None
    uses: str | None = None
    name: str = ""
    env: dict[str, str] = {}


class Job(msgspec.Struct, frozen=True):
    """A job, with its condition."""

    steps: list[Step]
    condition: str = msgspec.field(name="if", default="")


class Workflow(msgspec.Struct, frozen=True):
    """The parts of a workflow that run shell steps."""

    jobs: dict[str, Job]
    env: dict[str, str] = {}


class Log(NamedTuple):
    """The output of the steps of a job, as a runner receives it."""

    text: str

    @property
    def shown(self) -> str:
        """The log as GitHub shows it: masks are hidden from the line that sets them."""
        masks: list[str] = []
        lines: list[str] = []
        for line in self.text.splitlines():
            if line.startswith("::add-mask::"):
                masks.append(line.removeprefix("::add-mask::"))
                continue
            lines.append(reduce(lambda text, mask: text.replace(mask, "***"), masks, line))
        return "\n".join(lines)


def read_workflow(path: Path) -> Workflow:
    # YAML 1.1 reads the key "on" as true, which is no field name.
    content: dict[object, object] = msgspec.yaml.decode(path.read_bytes())
    return msgspec.convert({k: v for k, v in content.items() if isinstance(k, str)}, Workflow)


class Runner:
    """Runs jobs, with files in ``folder``.

    ``values`` are those of the expressions that the workflow uses, such as secrets. ``environment``
    has further variables. ``programs`` are shell scripts in place of the programs of their names.
    """

    def __init__(
        self,
        workflow: Workflow,
        folder: Path,
        *,
        values: Mapping[str, str],
        environment: Mapping[str, str],
        programs: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.variables: dict[str, str] = {}
        """The variables that steps have set for later steps."""
        self._workflow = workflow
        self._values = values
        self._environment = environment
        self._file = folder / "env"
        self._folder = folder / "programs"
        self._programs = {
            "python": f'exec "{sys.executable}" -W error "$@"',
            "neonctl-async": f'exec "{sys.executable}" -W error -m neonctl_async "$@"',
            "pip": "true",
            **programs,
        }

    async def run(self, job: str, directory: Path, *, without: Sequence[str] = ()) -> Log:
        """Run the shell steps of a job, except those with the names in ``without``."""
        return await asyncio.to_thread(self._run_job, self._workflow.jobs[job], directory, without)

    async def shell(self, script: str, directory: Path, environment: Mapping[str, str]) -> str:
        """Run a script as a step does. Return its output."""
        return await asyncio.to_thread(self._run_script, script, directory, environment)

    def _run_script(self, script: str, directory: Path, environment: Mapping[str, str]) -> str:
        self._write_programs()
        return _output(script, directory, self._variables_of(Step()) | dict(environment))

    def _run_job(self, job: Job, directory: Path, without: Sequence[str]) -> Log:
        self.variables.clear()
        self._write_programs()
        log = ""
        for step in job.steps:
            if step.run is not None and step.name not in without:
                self._file.write_text("", encoding="utf-8")
                script = self._evaluated(step.run)
                log += _output(script, directory, self._variables_of(step), before=log)
                lines = self._file.read_text(encoding="utf-8").splitlines()
                self.variables |= dict(line.split("=", 1) for line in lines)
        return Log(log)

    def _write_programs(self) -> None:
        self._folder.mkdir(exist_ok=True)
        for name, script in self._programs.items():
            path = self._folder / name
            path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
            path.chmod(0o755)

    def _variables_of(self, step: Step) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("NEON_")}
        expressions = {**self._workflow.env, **step.env}
        return {
            **own,
            **self._environment,
            **self.variables,
            **{name: self._evaluated(value) for name, value in expressions.items()},
            "PATH": f"{self._folder}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": PACKAGE,
            "GITHUB_ENV": str(self._file),
            "GITHUB_REPOSITORY": "shop/web",
        }

    def _evaluated(self, text: str) -> str:
        return re.sub(r"\$\{\{ (.+?) \}\}", lambda found: self._values[found[1]], text)


def _output(script: str, directory: Path, variables: Mapping[str, str], *, before: str = "") -> str:
    process = subprocess.run(
        [*SHELL, script],
        cwd=directory,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    assert process.returncode == 0, before + process.stdout
    return process.stdout
