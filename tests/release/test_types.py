"""Type checks of programs that use the installed wheel."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.release import generated
from tests.release.conftest import Installed
from tests.support.methods import CONVENIENCES

pytestmark = pytest.mark.release

PROGRAMS = Path(__file__).parent / "programs"

MISTAKES = (
    "import neonctl_async.nothing",
    "from neonctl_async import EndpointSpec, NeonClient, PollPolicy, RetryPolicy",
    "from neonctl_async.types import Project",
    "NeonClient(polling=RetryPolicy())",
    "PollPolicy(5)",
    "",
    "async def mistakes(neon: NeonClient, project: Project) -> None:",
    "    neon.projects.delete(project.id)",
    "    await neon.projects.list()",
    "    for each in neon.projects.list(): pass",
    "    await neon.projects.create(nmae='shop')",
    "    await neon.branches.get(project.id)",
    "    await neon.branches.create(project.id, endpoints='read_write')",
    "    await neon.branches.list(project.id, sort_order='up').collect()",
    "    await neon.operations.wait(project.id)",
    "    await neon.operations.wait(project)",
    "    (await neon.operations.wait([])).result",
    "    async with neon.branches.ephemeral(project.id) as created: print(created.id)",
    "    await neon.branches.create(project.id, init_source='schema')",
    "    await neon.branches.ensure(project.id, name='main', parent_id='br-1')",
    "    await neon.endpoints.create(project.id, branch_id='br-1', type='rw')",
    "    EndpointSpec(type='readwrite')",
    "    project.name = 'other'",
    "    print(project.nmae)",
)
CORRECT_LINES = {2, 3, 6, 7}


def mypy_errors(folder: Path, installed: Installed) -> set[tuple[str, int]]:
    """Return the file and the line of each error that mypy reports."""
    command = [sys.executable, "-m", "mypy", "--strict", "--output=json", "--config-file="]
    command += [f"--python-executable={installed.python}", "--cache-dir=.mypy_cache", "."]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    messages = [json.loads(line) for line in result.stdout.splitlines()]
    return {
        (message["file"], message["line"]) for message in messages if message["severity"] == "error"
    }


def pyright_errors(folder: Path, installed: Installed) -> set[tuple[str, int]]:
    """Return the file and the line of each error that pyright reports."""
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    report = pyright(folder, installed)
    return {
        (Path(diagnostic["file"]).name, diagnostic["range"]["start"]["line"] + 1)
        for diagnostic in report["generalDiagnostics"]
    }


def pyright(folder: Path, installed: Installed, *arguments: str) -> Any:
    result = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", *arguments],
        cwd=folder,
        env={**os.environ, "PATH": f"{installed.python.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )  # --verifytypes ignores --pythonpath and uses the first Python on the PATH
    return json.loads(result.stdout)


@pytest.fixture(scope="module", params=[mypy_errors, pyright_errors])
def errors(
    request: pytest.FixtureRequest, complete: Installed, tmp_path_factory: pytest.TempPathFactory
) -> set[tuple[str, int]]:
    folder = tmp_path_factory.mktemp("programs")
    for program in PROGRAMS.glob("*.py"):
        shutil.copy(program, folder)
    (folder / "mistakes.py").write_text("\n".join(MISTAKES))
    (folder / "every_method.py").write_text(generated.program())
    check: Callable[[Path, Installed], set[tuple[str, int]]] = request.param
    return check(folder, complete)


def test_correct_programs_pass(errors: set[tuple[str, int]]) -> None:
    assert {place for place in errors if place[0] != "mistakes.py"} == set()


def test_every_mistake_is_found(errors: set[tuple[str, int]]) -> None:
    found = {line for file, line in errors if file == "mistakes.py"}
    assert found == set(range(1, len(MISTAKES) + 1)) - CORRECT_LINES


def test_every_convenience_is_called_by_a_program() -> None:
    text = "".join(program.read_text() for program in PROGRAMS.glob("*.py"))
    assert [name for name in CONVENIENCES if f"neon.{name}(" not in text] == []


UNTYPED_BASES = {"pytest_neonctl_async.django.NeonRunner"}
"""The classes whose bases have no types: those of Django."""


@pytest.mark.parametrize("package", ["neonctl_async", "neonctl_local", "pytest_neonctl_async"])
def test_every_type_is_known(package: str, complete: Installed) -> None:
    report = pyright(complete.folder, complete, "--verifytypes", package, "--ignoreexternal")
    completeness = report["typeCompleteness"]
    errors = {
        symbol["name"]
        for symbol in completeness["symbols"]
        if not symbol["isTypeKnown"] or symbol["isTypeAmbiguous"]
    }
    assert errors <= UNTYPED_BASES
    assert Path(completeness["packageRootDirectory"]).is_relative_to(complete.python.parents[1])
