"""One command at work: its client, what it waits for, and how it ends."""

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

from neonctl_async._streams import discard_stdout
from neonctl_async.cli import tracked
from neonctl_async.cli.exits import ExitCode, exit_code
from neonctl_async.cli.output import Output, Screen
from neonctl_async.client import NeonClient
from neonctl_async.config import API_KEY_VARIABLE
from neonctl_async.errors import (
    ConfigurationError,
    NeonError,
    NotFoundError,
    OperationFailedError,
)
from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.progress import WaitProgress

T = TypeVar("T")
Tell = Callable[[Operation], object]

_NO_KEY = (
    f"no API key: set {API_KEY_VARIABLE} to one made in the platform's console, under account "
    "settings; or run `neonctl-async local` and paste the lines that it prints"
)


class CommandSession:
    """What a command works with: the client, and the screen."""

    def __init__(self, screen: Screen, neon: NeonClient) -> None:
        self.screen = screen
        self.neon = neon
        self.tracked: tracked.TrackedOperations = tracked.TrackedOperations()

    async def ask(self, request: Awaitable[T]) -> T:
        """Send a request that changes something. When interrupted, says that it may have."""
        try:
            return await request
        except asyncio.CancelledError:
            self.screen.tell("the request was under way: it may have been carried out")
            raise

    async def wait(
        self,
        operations: Sequence[Operation | OperationRef],
        *,
        timeout: float,
        tell: Tell | None = None,
    ) -> None:
        """Wait for operations; each record goes to ``tell``, else is shown as progress.

        ``awaited`` holds how far they are.
        """
        if not operations:
            return
        self.tracked = tracked.TrackedOperations(operations)
        with self._shown(tell) as show:

            def note(operation: Operation) -> None:
                self.tracked.note(operation)
                show(operation)

            await self.neon.operations.wait(operations, timeout=timeout, on_update=note)

    @contextmanager
    def _shown(self, tell: Tell | None) -> Generator[Tell]:
        """What is called with each record: a live display, or lines, unless scripts would read."""
        if tell is not None:
            yield tell
        elif self.screen.output is Output.TABLE or self.screen.errors.file.isatty():
            with WaitProgress(self.neon, console=self.screen.errors) as progress:
                yield progress
        else:
            yield lambda _operation: None


def run(
    screen: Screen, base_url: str | None, work: Callable[[CommandSession], Awaitable[None]]
) -> int:
    """Do the work of a command; answers its exit code, once every error was told in a line."""
    if not os.environ.get(API_KEY_VARIABLE):
        return _failed(screen, ConfigurationError(_NO_KEY))
    try:
        session = CommandSession(screen, NeonClient(base_url=base_url, trust_env=True))
    except ConfigurationError as error:
        return _failed(screen, error)
    with _notices_told(screen):
        code = _outcome(session, work)
    if code not in {ExitCode.DONE, ExitCode.USAGE, ExitCode.BROKEN_PIPE}:
        _leave(session)
    return code


def _outcome(
    session: CommandSession, work: Callable[[CommandSession], Awaitable[None]]
) -> ExitCode:
    async def in_session() -> None:
        task = asyncio.current_task()
        assert task is not None
        with suppress(NotImplementedError):  # on Windows
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        async with session.neon:
            await work(session)

    try:
        asyncio.run(in_session())
    except (KeyboardInterrupt, asyncio.CancelledError):
        session.screen.tell("interrupted", "bold red")
        _tell_failures(session)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        discard_stdout()
        return ExitCode.BROKEN_PIPE
    except (NeonError, ValueError) as error:
        code = _failed(session.screen, error)
        if isinstance(error, NotFoundError):
            session.tracked.drop_missing(error.path)
        elif not isinstance(error, OperationFailedError):
            _tell_failures(session)
        return code
    except OSError as error:
        discard_stdout()
        session.screen.tell(f"error: standard output cannot be written: {error}", "bold red")
        return ExitCode.OUTPUT_ERROR
    return ExitCode.DONE


class _Notices(logging.Handler):
    """Tells what the library logs. It quotes the platform, and is made as harmless as all else."""

    def __init__(self, screen: Screen) -> None:
        super().__init__(logging.WARNING)
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        self._screen.tell(record.getMessage())


@contextmanager
def _notices_told(screen: Screen) -> Generator[None]:
    notices = _Notices(screen)
    logger = logging.getLogger("neonctl_async")
    logger.addHandler(notices)
    try:
        yield
    finally:
        logger.removeHandler(notices)


def _failed(screen: Screen, error: Exception) -> ExitCode:
    screen.tell(f"error: {error}", "bold red")
    return exit_code(error)


def _tell_failures(session: CommandSession) -> None:
    """Tell what has ended unsuccessfully by the time that a wait ends for another reason."""
    for failed in session.tracked.failed:
        reason = f": {failed.error}" if failed.error else ""
        session.screen.tell(f"{failed.action} {failed.id} is {failed.status}{reason}", "red")


def _leave(session: CommandSession) -> None:
    """Write down what is still pending, and tell how to go on."""
    left = session.tracked.pending
    if not left:
        return
    try:
        path = tracked.written(left)
    except OSError as error:
        session.screen.tell(f"cannot write down what is pending: {error}", "bold red")
        names = (f"{one.id} in {one.project_id}" for one in left)
        session.screen.tell(f"still pending: {', '.join(names)}")
    else:
        session.screen.tell(
            f"operations still pending: {len(left)}; to wait for them: "
            f"neonctl-async operations wait --resume {path}"
        )
