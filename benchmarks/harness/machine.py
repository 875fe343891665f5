"""What was measured on, and with which versions."""

import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import msgspec

PACKAGES = (
    "neonctl-async", "aiohttp", "anyio", "msgspec", "tenacity", "neon-api", "httpx", "pydantic",
)  # fmt: skip


_SDK = Path(__file__).parents[2] / ".bench/node_modules/@neon/sdk/package.json"


class _Package(msgspec.Struct):
    version: str


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine, as far as it matters."""

    cpu: str
    cores: int
    python: str
    os: str

    def __str__(self) -> str:
        return f"{self.cpu}, {self.cores} cores, {self.python}, {self.os}"


def machine() -> Machine:
    """This machine."""
    return Machine(
        cpu=_cpu(),
        cores=os.cpu_count() or 1,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        os=f"{platform.system()} {platform.release().partition('-')[0]}",
    )


def _cpu() -> str:
    told = Path("/proc/cpuinfo")
    if told.exists():
        for line in told.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """The versions of whatever is measured or serves the answers."""
    return {
        **{name: version(name) for name in PACKAGES},
        "@neon/sdk": msgspec.json.decode(_SDK.read_bytes(), type=_Package).version,
        "node": _told("node", "--version").removeprefix("v"),
        "nginx": _told(nginx(), "-v").rpartition("/")[2],
    }


def nginx() -> str:
    """The program, which is often where only root's PATH leads."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    if found := shutil.which("nginx", path=path):
        return found
    sys.exit("nginx, which serves the answers, is missing: on Debian, apt install nginx-light")


def _told(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return (done.stdout + done.stderr).strip()
