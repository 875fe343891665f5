"""Downloads: the body of a response as a stream of bytes, or saved as a file."""

import asyncio
import math
import os
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Self

import anyio

from neonctl_async.transport.aiohttp_adapter import BodyStream
from neonctl_async.transport.calls import Call, Calls


class Download(AsyncIterator[bytes]):
    """The bytes of an object, which are read part by part within ``async with``.

    Iterate over the download with ``async for``. Each part contains at most a few hundred
    kilobytes, and no part is kept. The ``read`` timeout of the client limits the time between two
    parts; no other timeout applies while you read.

    If the connection breaks, or the object is incomplete, reading raises ConnectionLostError. It
    raises RequestTimeoutError if no byte arrives in time, and ClientClosedError if the client is
    closed. A broken download is not resumed: download the object again.
    """

    def __init__(self, stream: BodyStream, headers: Mapping[str, str], calls: Calls) -> None:
        self._stream = stream
        self._calls = calls
        self._is_started = False
        self._is_closed = False
        length = headers.get("Content-Length", "")
        self.size: int | None = int(length) if length.isdecimal() else None
        """The size of the object in bytes, or None if the response does not contain it."""
        self.etag: str | None = headers.get("ETag")
        """The ``ETag`` header, unchanged. It identifies the object's content."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._is_closed:
            raise RuntimeError("the download is closed: read it within its `async with` block")
        self._is_started = True
        with Call(self._calls) as call:
            call.start_request(math.inf)
            call.restart_read_timeout()
            try:
                part = await self._stream.read(call)
            finally:
                call.end_request()
        if not part:
            raise StopAsyncIteration
        return part

    async def save(self, path: str | os.PathLike[str]) -> None:
        """Write the object to a file, which may already exist.

        The file is replaced after the last byte. If the download fails, it stays as it was. Raises
        OSError if the file cannot be written, and RuntimeError if a part was read before.
        """
        if self._is_started:
            raise RuntimeError("a part of the download was read before: save it without reading")
        file = PartialFile(Path(path))
        try:
            async for part in self:
                await asyncio.to_thread(file.write, part)
            await asyncio.to_thread(file.finish)
        finally:
            with anyio.CancelScope(shield=True):
                await asyncio.to_thread(file.discard)

    def close(self) -> None:
        """Stop the download. The end of the ``async with`` block does this."""
        self._is_closed = True
        self._stream.close()


class PartialFile:
    """A file next to the target, which it replaces when it is complete.

    The methods run in threads. A cancelled task does not wait for its thread, so a thread may still
    write when the file is discarded.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._part = target.with_name(f".{target.name}.{os.urandom(6).hex()}.part")
        self._file: BinaryIO | None = None
        self._is_over = False
        self._lock = threading.Lock()

    def write(self, content: bytes) -> None:
        """Append to the file."""
        with self._lock:
            if not self._is_over:
                self._open().write(content)

    def finish(self) -> None:
        """Replace the target."""
        with self._lock:
            if not self._is_over:
                self._open().close()
                self._part.replace(self._target)

    def discard(self) -> None:
        """Delete the file, unless it has replaced the target."""
        with self._lock:
            self._is_over = True
            if self._file is not None:
                with suppress(OSError):  # a full disk was reported before
                    self._file.close()
                self._part.unlink(missing_ok=True)

    def _open(self) -> BinaryIO:
        if self._file is None:
            self._file = self._part.open("xb")
        return self._file
