"""The commands of ``python -m neonctl_local`` against a running local control plane."""

import asyncio
from io import StringIO
from typing import NamedTuple

import pytest

from control_plane.tests.client import Client
from neonctl_local.__main__ import main


class Result(NamedTuple):
    """The exit status and the output of a command."""

    status: int
    out: str
    err: str


class Shell:
    """Runs commands with the environment variables of a person."""

    def __init__(
        self, api: Client, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        self.connect(api.base_url, api.key)

    def connect(self, base_url: str, key: str) -> None:
        """Run the next commands with another server."""
        self._monkeypatch.setenv("NEON_API_HOST", base_url)
        self.act_as(key)

    def act_as(self, key: str) -> None:
        """Run the next commands with another key."""
        self._monkeypatch.setenv("NEON_API_KEY", key)

    def type_in(self, text: str) -> None:
        """Give the next commands a standard input."""
        self._monkeypatch.setattr("sys.stdin", StringIO(text))

    async def run(self, *arguments: str) -> Result:
        """Run a command, in a thread because it waits for the server of this event loop."""
        self._capsys.readouterr()
        status = await asyncio.to_thread(main, arguments)
        printed = self._capsys.readouterr()
        return Result(status, printed.out, printed.err)

    async def expect(self, *arguments: str) -> str:
        """Run a command that succeeds. Return its output without the last line break."""
        result = await self.run(*arguments)
        assert result.status == 0, result.err
        return result.out.removesuffix("\n")

    async def rows(self, *arguments: str) -> list[list[str]]:
        """Run a command that prints a list."""
        return [line.split("\t") for line in (await self.expect(*arguments)).splitlines()]


@pytest.fixture
def shell(
    api: Client, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    """A shell of the first user."""
    return Shell(api, capsys, monkeypatch)
