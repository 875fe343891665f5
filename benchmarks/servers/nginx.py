"""nginx on loopback: it sends the same responses to every client, faster than any can read them."""

import asyncio
import os
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from typing import Self
from urllib.parse import quote

import aiohttp

from benchmarks.servers import fixed_responses
from benchmarks.servers.fixed_responses import PAGE, PROJECT_ID, cursor_of

API = "/api/v2"
_SETTINGS = """
daemon off;
master_process off;
pid nginx.pid;
error_log stderr error;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path body;
    fastcgi_temp_path fastcgi;
    proxy_temp_path proxy;
    scgi_temp_path scgi;
    uwsgi_temp_path uwsgi;
    keepalive_requests 100000000;
    keepalive_timeout 1h;
    open_file_cache max=100;
    open_file_cache_valid 1h;
    etag off;
    default_type application/json;
    map_hash_max_size 8192;
    map_hash_bucket_size 128;
    map $arg_cursor $page {{ {pages} }}
    server {{
        listen 127.0.0.1:{port};
        root {folder};
        add_header Strict-Transport-Security "max-age=31536000; includeSubDomains";
        add_header Vary Origin;
        add_header X-Neon-Ret-Request-Id $request_id;
        location = {api}/projects/{project_id}/operations {{ try_files /$page =404; }}
        location = {api}/projects/{project_id}/operations/{operation_id} {{
            try_files /operation.json =404;
        }}
    }}
}}
"""


class Nginx:
    """A single nginx process with its own temporary folder, which serves ``count`` operations."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._folder = tempfile.TemporaryDirectory()
        self._process: asyncio.subprocess.Process | None = None
        self._origin = ""
        self.operation_id = ""

    async def __aenter__(self) -> Self:
        port = free_port()
        self._origin = f"http://127.0.0.1:{port}"
        settings = self._prepare(port)
        self._process = await asyncio.create_subprocess_exec(
            find_nginx(), "-e", "stderr", "-p", self._folder.name, "-c", settings
        )
        await self._wait_until_ready()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        await self._process.wait()
        self._folder.cleanup()

    @property
    def base_url(self) -> str:
        """The base URL of the API."""
        return self._origin + API

    def _prepare(self, port: int) -> Path:
        folder = Path(self._folder.name)
        self.operation_id = fixed_responses.write(folder, self._count)
        pages = {cursor_of(n) or "": n for n in range(self._count // PAGE + 1)}
        # Some clients send a colon unescaped, others as %3A; nginx compares the raw text.
        pages |= {quote(cursor, safe=""): n for cursor, n in pages.items()}
        settings = folder / "nginx.conf"
        settings.write_text(
            _SETTINGS.format(
                pages=" ".join(f'"{cursor}" page-{n}.json;' for cursor, n in pages.items()),
                port=port,
                folder=folder,
                api=API,
                project_id=PROJECT_ID,
                operation_id=self.operation_id,
            )
        )
        return settings

    async def _wait_until_ready(self) -> None:
        url = f"{self.base_url}/projects/{PROJECT_ID}/operations/{self.operation_id}"
        for _ in range(200):
            try:
                async with aiohttp.ClientSession() as http, http.get(url):
                    return
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.02)
        sys.exit("nginx does not respond 4 seconds after its start")


def find_nginx() -> str:
    """Return the path of nginx, which is often in a folder of root's PATH only."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    if found := shutil.which("nginx", path=path):
        return found
    sys.exit("nginx is not installed; the benchmarks need it: on Debian, apt install nginx-light")


def free_port() -> int:
    """Return a port that no other program uses at the moment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
