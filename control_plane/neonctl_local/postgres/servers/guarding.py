"""Starts, watches and stops the guardian process of a control plane."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from neonctl_local.postgres.programs import program_environment
from neonctl_local.postgres.servers import guardian
from neonctl_local.postgres.servers.scheduling import Background, in_thread, logger

_RESTART_DELAY: Final = 1.0


class Guard:
    """Keeps a guardian running for the servers below ``root``.

    The guardian removes ``temporary``. It inherits ``locks``, which keep other control planes away
    from the directories until the guardian has finished.
    """

    def __init__(self, root: Path, temporary: Path, locks: Sequence[int]) -> None:
        self._arguments = [str(root), str(temporary)]
        self._locks = locks
        self._process: subprocess.Popen[bytes] | None = None
        self._background = Background()

    @property
    def pid(self) -> int | None:
        """The id of the guardian process."""
        return self._process.pid if self._process is not None else None

    async def start(self) -> None:
        """Start the guardian, and replace it if it exits."""
        try:
            await in_thread(self._spawn)
        finally:
            self._watch()

    async def stop(self) -> None:
        """Stop the guardian. Call this once the servers and temporary files are gone."""
        await self._background.stop()
        process = self._process
        if process is None:
            return
        self._process = None
        assert process.stdout is not None
        asyncio.get_running_loop().remove_reader(process.stdout.fileno())
        await in_thread(process.communicate, guardian.DONE)

    def _spawn(self) -> None:
        assert guardian.__file__ is not None
        self._process = subprocess.Popen(  # noqa: S603 - starts Python itself, without a shell
            [sys.executable, "-I", "-S", guardian.__file__, *self._arguments],
            cwd="/",
            env=program_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            pass_fds=self._locks,
        )

    def _watch(self) -> None:
        """Watch for the guardian's exit, which closes its otherwise unused standard output."""
        if self._process is not None and self._process.stdout is not None:
            output = self._process.stdout.fileno()
            asyncio.get_running_loop().add_reader(output, self._ended, output)

    def _ended(self, output: int) -> None:
        asyncio.get_running_loop().remove_reader(output)
        self._background.spawn(self._restart())

    async def _restart(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await in_thread(process.communicate)
            logger.warning("the guardian of the servers ended: status %s", process.returncode)
        while self._process is None:
            try:
                await self.start()
            except OSError as error:
                logger.warning("the guardian of the servers cannot be started: %s", error)
                await asyncio.sleep(_RESTART_DELAY)
