"""The machine that a run is measured on, and the versions of the software."""

import os
import platform
import sqlite3
import subprocess
from importlib.metadata import version
from pathlib import Path

import msgspec

from benchmarks.servers.nginx import find_nginx
from benchmarks.servers.postgres import newest_installation

PACKAGES = (
    "neonctl-async", "aiohttp", "anyio", "msgspec", "tenacity", "neon-api", "httpx", "pydantic",
)  # fmt: skip
OF_DATABASES = (
    "neonctl-async",
    "asyncpg",
    "psycopg",
    "pytest",
    "pytest-postgresql",
    "pytest-xdist",
)
OF_COMMAND_LINES = ("neonctl-async", "aiohttp", "msgspec", "typer")
_ROOT = Path(__file__).parents[2]
_SDK = _ROOT / ".bench/node_modules/@neon/sdk/package.json"
_CLI = _ROOT / ".bench-cli/node_modules/neon/package.json"


class _Package(msgspec.Struct):
    version: str


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of a machine that affect results."""

    cpu: str
    cores: int
    python: str
    os: str

    def __str__(self) -> str:
        return f"{self.cpu}, {self.cores} cores, {self.python}, {self.os}"


def machine() -> Machine:
    """Return this machine."""
    return Machine(
        cpu=_cpu(),
        cores=os.cpu_count() or 1,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        os=f"{platform.system()} {platform.release().partition('-')[0]}",
    )


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Return the versions of the clients, their dependencies, Node.js and nginx."""
    return {
        **{name: version(name) for name in PACKAGES},
        "@neon/sdk": msgspec.json.decode(_SDK.read_bytes(), type=_Package).version,
        "node": _output("node", "--version").removeprefix("v"),
        "nginx": _output(find_nginx(), "-v").rpartition("/")[2],
    }


def versions_of_command_lines() -> dict[str, str]:
    """Return the versions of both command lines and of what they run on."""
    return {
        **{name: version(name) for name in OF_COMMAND_LINES},
        "neon": msgspec.json.decode(_CLI.read_bytes(), type=_Package).version,
        "node": _output("node", "--version").removeprefix("v"),
    }


def versions_of_control_plane() -> dict[str, str]:
    """Return the versions of the local control plane and of what it runs on."""
    names = ("neonctl-async", "aiohttp", "msgspec")
    return {**{name: version(name) for name in names}, "SQLite": sqlite3.sqlite_version}


def versions_of_databases() -> dict[str, str]:
    """Return the versions of the drivers, of the peers and of Postgres."""
    postgres = ".".join(map(str, newest_installation().version))
    return {**{name: version(name) for name in OF_DATABASES}, "Postgres": postgres}


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return (done.stdout + done.stderr).strip()
