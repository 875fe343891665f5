"""The Docker Compose file of the page on local databases and the network."""

import asyncio
import os
import re
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from neonctl_async import NeonClient
from tests.support.pages import TEXTS, code_blocks

pytestmark = pytest.mark.process


def shell_command(compose: str, service: str) -> str:
    """Return the shell command of a service."""
    command = re.search(rf'  {service}:\n(?:    .*\n)*?    command: sh -c "(.*)"\n', compose)
    assert command is not None
    return command[1]


async def shell(command: str) -> str:
    """Run a shell command, and return its output."""
    process = await asyncio.create_subprocess_shell(command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()


async def test_tests_in_another_container_reach_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [(_, compose)] = code_blocks(TEXTS["docs/local-databases.md"], "yaml")
    here = compose.replace("/run/neon", str(tmp_path)).replace("python -m", f"{sys.executable} -m")
    serve = shell_command(here, "control-plane").replace("pip install neonctl-local", "true")
    serve = serve.replace("--host", "--port 0 --host")
    await shell(f"echo export NEON_ALLOW_HTTP=stale > {tmp_path}/env")
    [check] = re.findall("test: (.*)\n", here)
    process = await asyncio.create_subprocess_shell(serve, stderr=asyncio.subprocess.DEVNULL)
    try:
        for ready in (f"! grep -q stale {tmp_path}/env", check):
            await shell(f"until {ready}; do sleep 0.05; done 2> /dev/null")
        start = shell_command(here, "tests").replace(f"{sys.executable} -m pytest", "env")
        for line in (await shell(start)).splitlines():
            name, _, value = line.partition("=")
            if name.startswith("NEON_") and name not in os.environ:
                monkeypatch.setenv(name, value)
        resolve = socket.getaddrinfo

        def service_names(host: str, *args: Any, **kwargs: Any) -> Any:
            return resolve({"control-plane": "127.0.0.1"}[host], *args, **kwargs)

        monkeypatch.setattr(socket, "getaddrinfo", service_names)
        async with NeonClient() as neon:
            assert await neon.projects.list().collect() == []
    finally:
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
