"""The code of docs/services.md runs against a server with one branch, in memory."""

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.models.records import JsonObject
from tests.models.services.storage_records import BUCKET, DEPLOYMENT, FUNCTION, PRESIGNED
from tests.support.pages import ROOT, TEXTS, code_blocks, compiled
from tests.support.records import API_KEY, client_of
from tests.support.server import MisbehavingServer, Received, Respond, http_response

PAGE, KIND = "docs/services.md", 'python title="Neon only: files"'


class StorageServer(MisbehavingServer):
    """A server that stores the objects of a bucket, and builds a function when it is polled."""

    def __init__(self) -> None:
        super().__init__(self.respond)
        self.objects: dict[str, bytes] = {}
        self.status = "building"

    def respond(self, request: Received) -> Respond:
        """Return the response to a request."""
        *_, last = request.path.split("/")
        method: Callable[[Received], Respond] = getattr(
            self, f"{request.method}_{last}".lower().replace("-", "_"), self._object
        )
        return method(request)

    def post_buckets(self, _request: Received) -> Respond:
        return http_response(201, {"bucket": BUCKET})

    def post_presign(self, request: Received) -> Respond:
        key = request.path.split("/")[-2]
        url = f"http://127.0.0.1:{self.port}/images/{key}?X-Amz-Signature=hunter2"
        return http_response(content={**PRESIGNED, "url": url})

    def get_download(self, request: Received) -> Respond:
        return http_response(body=self.objects[unquote(request.path.split("/")[-2])])

    def get_objects(self, _request: Received) -> Respond:
        folders = sorted({f"{key.partition('/')[0]}/" for key in self.objects})
        listing = {"folders": folders, "objects": [], "prefix": "", "is_truncated": False}
        return http_response(content=listing)

    def delete_objects_by_prefix(self, _request: Received) -> Respond:
        deleted = len(self.objects)
        self.objects.clear()
        return http_response(content={"deleted": deleted})

    def post_deployments(self, _request: Received) -> Respond:
        return http_response(201, {"deployment": self._deployment()})

    def get_hello(self, _request: Received) -> Respond:
        self.status = "completed"
        function = {**FUNCTION, "current_deployment": self._deployment()}
        return http_response(content={"function": function})

    def _deployment(self) -> JsonObject:
        return {**DEPLOYMENT, "status": self.status}

    def _object(self, request: Received) -> Respond:
        """Store the object of a presigned upload."""
        assert (request.method, request.headers["content-type"]) == ("PUT", "image/png")
        key = unquote(urlsplit(request.target).path.removeprefix("/images/"))
        self.objects[key] = request.body
        return http_response(body=b"")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with the archive of a function."""
    (tmp_path / "hello.zip").write_bytes(b"PK")
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def test_code_of_the_page_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with StorageServer() as server, client_of(server) as neon:
        names: dict[str, object] = {"neon": neon, "project_id": "p-1", "branch_id": "br-1"}
        for line, code in code_blocks(TEXTS[PAGE], KIND):
            if inspect.iscoroutine(result := eval(compiled(ROOT / PAGE, line, code), names)):
                await result
        [upload] = [request for request in server.received if request.method == "PUT"]
        assert API_KEY not in str(upload)
    assert await asyncio.to_thread((folder / "tom.png").read_bytes) == b"a picture"
    assert capsys.readouterr().out.splitlines() == [
        "9 None",
        "cats/",
        f"completed {FUNCTION['invocation_url']}",
    ]
