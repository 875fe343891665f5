"""``@neon/sdk`` in a Node.js process, controlled by commands.

::

    async with NeonSdk() as sdk:
        returned = await sdk.wait(server.base_url, operations)
"""

import asyncio
import itertools
import os
import shutil
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from pathlib import Path
from typing import Self, TypeVar

import msgspec

from neonctl_async import Operation

INSTALLED = Path(__file__).parents[2] / ".bench"
_DRIVER = Path(__file__).with_suffix(".mjs")
_LONGEST_LINE = 2**24

T = TypeVar("T")


class Failure(msgspec.Struct, frozen=True):
    """The error of a call. ``status`` is that of the response or of the failed operation."""

    kind: str
    message: str
    status: str | None


class Returned(msgspec.Struct, frozen=True):
    """The times by ``time.monotonic()`` at which all calls had returned, and each of them."""

    at: float
    outcomes: list[Failure | None]
    """The error of each call."""
    each: list[float]

    def returned_at(self) -> float:
        """Return when the last call returned. Raises RuntimeError if a call failed."""
        for failure in filter(None, self.outcomes):
            raise RuntimeError(failure)
        return self.at


class _Memory(msgspec.Struct, frozen=True):
    bytes: float


class _Numbered(msgspec.Struct, frozen=True):
    id: int


class NeonSdk:
    """The SDK in its own process, with its default settings.

    Calls may run concurrently. Raises RuntimeError if the process exits while a call is running.
    """

    def __init__(self) -> None:
        self._process: Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._results: dict[int, asyncio.Future[bytes]] = {}
        self._ids = itertools.count()

    async def __aenter__(self) -> Self:
        node = shutil.which("node")
        if node is None or not INSTALLED.exists():
            raise RuntimeError("@neon/sdk or Node.js is not installed; run `make bench`")
        command = (node, "--no-warnings", "--expose-gc", _DRIVER, INSTALLED)
        self._process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, limit=_LONGEST_LINE, start_new_session=True
        )
        assert self._process.stdout is not None
        self._reader = asyncio.create_task(self._read(self._process.stdout))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._reader is not None
        if self._process.returncode is None:
            # A cancelled call may still be running there. The command ``node`` may be a script
            # that starts the real one, which has to end as well.
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        await self._reader

    async def wait(self, base_url: str, operations: Sequence[Operation]) -> Returned:
        """Call ``waitFor({operations})``."""
        return await self.call("wait", Returned, baseUrl=base_url, operations=operations)

    async def create(
        self,
        base_url: str,
        branches: Sequence[tuple[str, str]],
        arrivals: Sequence[float] | None = None,
    ) -> Returned:
        """Call ``branches.create`` for each project and name, concurrently; each call waits.

        Each call starts after the seconds in ``arrivals``, by default at once.
        """
        arguments = [
            {"projectId": project_id, "name": name, "arrives": arrives}
            for (project_id, name), arrives in zip(
                branches, arrivals or [0.0] * len(branches), strict=True
            )
        ]
        return await self.call("create", Returned, baseUrl=base_url, branches=arguments)

    async def bytes_per_operation(self, base_url: str, responses: Sequence[bytes]) -> float:
        """Return the memory of a pending operation of these responses, in bytes."""
        texts = [response.decode() for response in responses]
        memory = await self.call("pendingMemory", _Memory, baseUrl=base_url, responses=texts)
        return memory.bytes

    async def call(self, method: str, type: type[T], **arguments: object) -> T:
        """Call a method of the process and return its result."""
        assert self._process is not None
        assert self._process.stdin is not None
        id = next(self._ids)
        command = {"id": id, "method": method, **arguments}
        result = self._results[id] = asyncio.get_running_loop().create_future()
        self._process.stdin.write(msgspec.json.encode(command) + b"\n")
        await self._process.stdin.drain()
        return msgspec.json.decode(await result, type=type)

    async def _read(self, lines: asyncio.StreamReader) -> None:
        async for line in lines:
            self._results.pop(msgspec.json.decode(line, type=_Numbered).id).set_result(line)
        for result in self._results.values():
            if not result.done():
                result.set_exception(RuntimeError("the process of @neon/sdk has exited"))
