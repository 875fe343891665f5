"""Runs one command, and handles its errors, its exit code, and the file of pending operations."""

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from neonctl_async.cli import reference_file
from neonctl_async.cli.exits import ExitCode, exit_code
from neonctl_async.cli.interrupts import run_interruptible
from neonctl_async.cli.output import Screen
from neonctl_async.cli.session import CommandSession
from neonctl_async.cli.streams import discard_stdout
from neonctl_async.client import NeonClient
from neonctl_async.config import (
    ALLOW_HTTP_VARIABLE,
    API_KEY_VARIABLE,
    BASE_URL_VARIABLE,
    RateBudget,
    RetryPolicy,
    as_secret,
    resolve_base_url,
    resolve_http_hosts,
)
from neonctl_async.errors import (
    APIError,
    ConfigurationError,
    NeonError,
    NotFoundError,
    WaitError,
)
from neonctl_async.hooks import Hooks, ResponseReceived
from neonctl_async.models.secret import Secret
from neonctl_async.transport.hints import lacks_org

_NO_KEY = (
    f"no API key: create one in the Neon console under account settings and set "
    f"{API_KEY_VARIABLE}; or run `neonctl-async local` and paste the lines that it prints"
)


def run(
    screen: Screen,
    base_url: str | None,
    work: Callable[[CommandSession], Awaitable[None]],
    *,
    verbose: bool = False,
) -> int:
    """Run a command. Print its errors, one line each, and return its exit code.

    With ``verbose``, also print its requests.
    """
    if not os.environ.get(API_KEY_VARIABLE):
        return _print_error(screen, ConfigurationError(_NO_KEY))
    hooks = [Hooks(on_response=_request_printer(screen))] if verbose else []
    try:
        session = CommandSession(screen, new_client(base_url, hooks=hooks))
    except ConfigurationError as error:
        return _print_error(screen, error)
    with _log_on_screen(screen):
        code = _outcome(session, work)
    if code not in {ExitCode.DONE, ExitCode.USAGE, ExitCode.BROKEN_PIPE}:
        _save_pending(session)
    if session.resumed is not None and session.waited and not session.operations.pending:
        with suppress(OSError):
            session.resumed.unlink()
    return code


def _request_printer(screen: Screen) -> Callable[[ResponseReceived], object]:
    """Return a hook that prints requests."""

    def print_request(received: ResponseReceived) -> None:
        request = received.request
        outcome = str(received.status or received.error or "cancelled")
        screen.print_message(
            f"{request.method} {urlsplit(request.url).path}: {outcome} "
            f"after {received.seconds * 1000:.0f} ms",
            "dim",
        )

    return print_request


def new_client(
    base_url: str | None, *, retry: RetryPolicy = RetryPolicy(), hooks: Sequence[Hooks] = ()
) -> NeonClient:
    """Return a client that shares its rate budget with other programs of the user."""
    environment_url = Secret(os.environ.get(BASE_URL_VARIABLE, ""))
    http_hosts = resolve_http_hosts(None, os.environ.get(ALLOW_HTTP_VARIABLE, ""))
    resolved = resolve_base_url(as_secret(base_url), environment_url, http_hosts)
    budget = RateBudget.of_user(resolved)
    return NeonClient(base_url=base_url, retry=retry, budget=budget, hooks=hooks, trust_env=True)


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
        run_interruptible(in_session(), lambda: _save_pending(session))
    except (KeyboardInterrupt, asyncio.CancelledError):
        session.screen.print_message("interrupted", "bold red")
        _print_failures(session)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        discard_stdout()
        return ExitCode.BROKEN_PIPE
    except (NeonError, ValueError) as error:
        code = _print_error(session.screen, error)
        if isinstance(error, NotFoundError):
            session.operations.drop_missing(error.path)
        elif not (isinstance(error, WaitError) and error.settled):  # else the error names them
            _print_failures(session)
        return code
    except OSError as error:
        discard_stdout()
        session.screen.print_message(
            f"error: standard output cannot be written: {error}", "bold red"
        )
        return ExitCode.OUTPUT_ERROR
    return ExitCode.DONE


class _ScreenHandler(logging.Handler):
    """Prints the warnings that the library logs, with control characters escaped."""

    def __init__(self, screen: Screen) -> None:
        super().__init__(logging.WARNING)
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        self._screen.print_message(record.getMessage())


@contextmanager
def _log_on_screen(screen: Screen) -> Generator[None]:
    handler = _ScreenHandler(screen)
    logger = logging.getLogger("neonctl_async")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _print_error(screen: Screen, error: Exception) -> ExitCode:
    hint = ""
    if isinstance(error, APIError) and lacks_org(error.status, error.message):
        hint = "; set NEON_ORG_ID or pass --org, with an id or a name of 'orgs list'"
    screen.print_message(f"error: {error}{hint}", "bold red")
    return exit_code(error)


def _print_failures(session: CommandSession) -> None:
    """Print the operations that had failed when a wait stopped for another reason."""
    for failed in session.operations.failed:
        reason = f": {failed.error}" if failed.error else ""
        session.screen.print_message(
            f"{failed.action} {failed.id} is {failed.status}{reason}", "red"
        )


def _save_pending(session: CommandSession) -> None:
    """Write the pending operations to a file and print the command that resumes the wait."""
    pending = session.operations.pending
    if not pending:
        return
    try:
        path = reference_file.write(pending, session.resumed)
    except OSError as error:
        session.screen.print_message(
            f"cannot write the file of pending operations: {error}", "bold red"
        )
        names = (f"{one.id} in {one.project_id}" for one in pending)
        session.screen.print_message(f"still pending: {', '.join(names)}")
    else:
        session.screen.print_message(
            f"operations still pending: {len(pending)}; to wait for them: "
            f"neonctl-async operations wait --resume {path}"
        )
