"""The peer ``@neon/sdk``: a process of Node.js that is told what to do.

::

    async with NeonSdk() as sdk:
        returned, outcomes = await sdk.wait(server.base_url, operations)
"""

import asyncio
import itertools
import shutil
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
    """The error of a call: ``status`` is of the answer, or of the operation that failed."""

    kind: str
    message: str
    status: str | None


class Returned(msgspec.Struct, frozen=True):
    """When the last of the calls returned, as time.monotonic() has it, and how each ended."""

    at: float
    outcomes: list[Failure | None]

    def unfailing(self) -> float:
        """When they returned, if none failed. Raises RuntimeError for one that did."""
        for failure in filter(None, self.outcomes):
            raise RuntimeError(failure)
        return self.at


class _Memory(msgspec.Struct, frozen=True):
    bytes: float


class _Numbered(msgspec.Struct, frozen=True):
    id: int


class NeonSdk:
    """The SDK in a process of its own, with its default settings.

    Calls can be made at the same time. Raises RuntimeError where the process ends too early.
    """

    def __init__(self) -> None:
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._answers: dict[int, asyncio.Future[bytes]] = {}
        self._ids = itertools.count()

    async def __aenter__(self) -> Self:
        node = shutil.which("node")
        if node is None or not INSTALLED.exists():
            raise RuntimeError("@neon/sdk is not there: make bench installs it")
        command = (node, "--no-warnings", "--expose-gc", _DRIVER, INSTALLED)
        self._process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, limit=_LONGEST_LINE
        )
        assert self._process.stdout is not None
        self._reading = asyncio.create_task(self._read(self._process.stdout))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._reading is not None
        if self._process.returncode is None:
            self._process.kill()  # it may be in the middle of a call that nobody awaits
        await self._process.wait()
        await self._reading

    async def wait(self, base_url: str, operations: Sequence[Operation]) -> Returned:
        """``waitFor({operations})``."""
        return await self.ask("wait", Returned, baseUrl=base_url, operations=operations)

    async def wait_for_each(self, base_url: str, operations: Sequence[Operation]) -> Returned:
        """A ``waitFor`` an operation, all at once."""
        return await self.ask("waitForEach", Returned, baseUrl=base_url, operations=operations)

    async def create(self, base_url: str, branches: Sequence[tuple[str, str]]) -> Returned:
        """A ``branches.create`` for each project and name, all at once; each waits by itself."""
        asked = [{"projectId": project_id, "name": name} for project_id, name in branches]
        return await self.ask("create", Returned, baseUrl=base_url, branches=asked)

    async def bytes_of_each(self, base_url: str, answers: Sequence[bytes]) -> float:
        """What an operation of these answers takes of memory while it is waited for."""
        texts = [answer.decode() for answer in answers]
        return (await self.ask("memory", _Memory, baseUrl=base_url, answers=texts)).bytes

    async def ask(self, method: str, type: type[T], **arguments: object) -> T:
        """What a method of the process answers."""
        assert self._process is not None
        assert self._process.stdin is not None
        id = next(self._ids)
        command = {"id": id, "method": method, **arguments}
        answer = self._answers[id] = asyncio.get_running_loop().create_future()
        self._process.stdin.write(msgspec.json.encode(command) + b"\n")
        await self._process.stdin.drain()
        return msgspec.json.decode(await answer, type=type)

    async def _read(self, answers: asyncio.StreamReader) -> None:
        async for line in answers:
            self._answers.pop(msgspec.json.decode(line, type=_Numbered).id).set_result(line)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(RuntimeError("the process of @neon/sdk has ended"))
