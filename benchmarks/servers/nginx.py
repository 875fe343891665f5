"""nginx on loopback: what answers is the same for every contender, and faster than any of them."""

import asyncio
import socket
import sys
import tempfile
from pathlib import Path
from typing import Self
from urllib.parse import quote

import aiohttp

from benchmarks.harness.machine import nginx
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
        location = /requests {{ stub_status; }}
    }}
}}
"""


class Nginx:
    """A real nginx of one process, in a folder of its own, with as many operations."""

    def __init__(self, stored: int) -> None:
        self._stored = stored
        self._folder = tempfile.TemporaryDirectory()
        self._process: asyncio.subprocess.Process | None = None
        self._origin = ""
        self.operation_id = ""

    async def __aenter__(self) -> Self:
        port = _free_port()
        self._origin = f"http://127.0.0.1:{port}"
        settings = self._prepare(port)
        self._process = await asyncio.create_subprocess_exec(
            nginx(), "-e", "stderr", "-p", self._folder.name, "-c", settings
        )
        await self._until_it_answers()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        await self._process.wait()
        self._folder.cleanup()

    @property
    def base_url(self) -> str:
        """Where the API is served."""
        return self._origin + API

    async def requests(self) -> int:
        """The requests answered so far, this one included."""
        async with aiohttp.ClientSession() as http, http.get(f"{self._origin}/requests") as told:
            return int((await told.text()).splitlines()[2].split()[2])

    def _prepare(self, port: int) -> Path:
        folder = Path(self._folder.name)
        self.operation_id = fixed_responses.write(folder, self._stored)
        pages = {cursor_of(n) or "": n for n in range(self._stored // PAGE + 1)}
        # Some clients send a colon as it is, others as %3A; nginx compares what was sent.
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

    async def _until_it_answers(self) -> None:
        for _ in range(200):
            try:
                await self.requests()
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.02)
            else:
                return
        sys.exit("nginx did not start")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
