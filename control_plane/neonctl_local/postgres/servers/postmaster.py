"""The process of one Postgres server: it starts, becomes ready, stops, or ends by itself."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.programs import (
    ProgramTimeoutError,
    program_environment,
    run_program,
)
from neonctl_local.postgres.servers.scheduling import in_thread, wait_for_end

START_TIME: Final = 60.0
"""How long a server may take to accept connections, in seconds. Recovery takes longest."""

FAST_TIME: Final = 30.0
"""How long a fast shutdown may take, in seconds, before an immediate one follows."""

IMMEDIATE_TIME: Final = 6.0
"""How long an immediate shutdown may take, in seconds, before all processes are killed."""

READY: Final = "database system is ready to accept connections"
_PROBE_TIME: Final = 5.0
_KEPT: Final = 8
_SHOWN: Final = 3
_LINE_LENGTH: Final = 300


def options(sockets: Path, port: int, *, durable: bool) -> dict[str, str]:
    """Return the settings that no project may change, for the command line.

    The main shared memory is anonymous, and dynamic shared memory consists of files in the data
    directory, so that killed servers leave nothing behind. The exception is a System V segment of
    56 bytes, which Postgres needs as a lock and the guardian removes. Log messages do not contain
    the statements of clients, because statements can contain passwords.
    """
    return {
        "listen_addresses": "",
        "unix_socket_directories": str(sockets),
        "unix_socket_permissions": "0700",
        "port": str(port),
        # A write that kill -9 interrupts between two pages of memory leaves a torn page, which
        # full_page_writes, on by default, repairs. So it stays on.
        "fsync": "on" if durable else "off",
        "shared_memory_type": "mmap",
        "dynamic_shared_memory_type": "mmap",
        "huge_pages": "off",
        "restart_after_crash": "on",
        "superuser_reserved_connections": "7",
        "wal_recycle": "off",
        "wal_init_zero": "off",
        "logging_collector": "off",
        "log_destination": "stderr",
        "log_line_prefix": "",
        "log_min_messages": "log",
        "log_min_error_statement": "panic",
        "log_error_verbosity": "terse",
        "log_statement": "none",
        "log_min_duration_statement": "-1",
        "log_checkpoints": "off",
        "log_connections": "off",
        "lc_messages": "C",
        "track_commit_timestamp": "on",
        "archive_mode": "off",
        "ssl": "off",
    }


class Identity(NamedTuple):
    """The arguments of ``subprocess.Popen`` that run a program as an account."""

    user: int | None = None
    group: int | None = None
    extra_groups: tuple[int, ...] | None = None


@cache
def launcher(account: ServerAccount | None) -> tuple[str, ...]:
    """Return the setpriv command that runs a program as ``account``, or () if setpriv is unusable.

    Without setpriv, Python has to fork this process, with all its page tables, to start a program
    as another user. Each start of a server then takes 6 ms more processor time.
    """
    program = shutil.which("setpriv")
    if account is None or program is None:
        return ()
    ids = (f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups")
    command = (program, *ids, "--")
    try:  # BusyBox has a setpriv without these options
        works = run_program([*command, "true"], timeout=_PROBE_TIME).status == 0
    except (OSError, ProgramTimeoutError):
        return ()
    return command if works else ()


def identity(account: ServerAccount | None) -> Identity:
    """Return the arguments that start a program as ``account``, without supplementary groups."""
    return Identity() if account is None else Identity(account.uid, account.gid, ())


class Postmaster:
    """The main process of one Postgres server.

    ``on_exit`` is called with the reason if the server ends without having been stopped.
    """

    def __init__(
        self,
        program: Path,
        data: Path,
        settings: Mapping[str, str],
        account: ServerAccount | None,
        on_exit: Callable[[str], None],
    ) -> None:
        self._data = data
        self._account = account
        self._on_exit = on_exit
        self._command = [str(program), "-D", str(data)]
        for name, value in settings.items():
            self._command += ["-c", f"{name}={value}"]
        self._process: subprocess.Popen[bytes] | None = None
        self._log = ServerLog()
        self._descriptors: list[int] = []
        self._pidfd: int | None = None
        self._started = asyncio.Event()
        self._exited = asyncio.Event()
        self._expected = True

    @property
    def pid(self) -> int | None:
        """The id of the process, or None while it is not running."""
        return self._process.pid if self._process is not None and not self.exited else None

    @property
    def exited(self) -> bool:
        """True if the process has exited."""
        return self._exited.is_set()

    async def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        try:
            await in_thread(self._spawn)
            self._watch()
            async with asyncio.timeout(START_TIME):
                await self._started.wait()
        except BaseException as error:
            self._watch()
            await self.stop(immediately=True)
            if isinstance(error, TimeoutError):
                late = f"The Postgres server did not accept connections within {START_TIME:g} s"
                raise ClusterError(f"{late}: {self._log.reason()}") from error
            if isinstance(error, OSError):
                raise ClusterError(f"Postgres cannot be started: {error}") from error
            raise
        if self.exited:
            raise ClusterError(f"The Postgres server did not start{self._describe_end()}")
        self._expected = False

    def reload(self) -> None:
        """Signal the server to reload its configuration files, without waiting for the reload."""
        self._signal(signal.SIGHUP)

    async def stop(self, *, immediately: bool = False) -> None:
        """Stop the server, and wait until it has exited. Its sessions get the SQLSTATE 57P01.

        An immediate stop skips the final checkpoint, so the next start has to recover the data. If
        the caller is cancelled, the stop becomes an immediate one.
        """
        self._expected = True
        stopping = asyncio.ensure_future(self._stop(immediately=immediately))
        try:
            await asyncio.shield(stopping)
        except asyncio.CancelledError:
            self._signal(signal.SIGQUIT)
            await wait_for_end(stopping)
            raise

    async def _stop(self, *, immediately: bool) -> None:
        steps = [(signal.SIGINT, FAST_TIME), (signal.SIGQUIT, IMMEDIATE_TIME)]
        for number, limit in steps[immediately:]:
            self._signal(number)
            if await self._ends_within(limit):
                return
        self._signal(signal.SIGKILL)
        await self._exited.wait()

    async def _ends_within(self, limit: float) -> bool:
        if self._process is None:
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self._exited.wait()
        return self.exited

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and not self.exited:
            self._process.send_signal(number)

    def _spawn(self) -> None:
        """Start the process in a session of its own, so Ctrl-C in a terminal does not reach it."""
        Path(self._command[0]).stat()  # raises OSError; setpriv would only exit
        prefix = launcher(self._account)
        user, group, extra_groups = identity(None if prefix else self._account)
        self._process = subprocess.Popen(  # noqa: S603 - starts Postgres, without a shell
            [*prefix, *self._command],
            cwd=self._data,
            env=program_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            user=user,
            group=group,
            extra_groups=extra_groups,
        )

    def _watch(self) -> None:
        """Read the server's log, and detect its exit.

        A pidfd shows the exit of the process. On systems without pidfds, the server is assumed to
        have exited when the log pipe is closed, because all of its processes keep the pipe open.
        """
        process = self._process
        if process is None or process.stderr is None or self._descriptors:
            return
        loop = asyncio.get_running_loop()
        pipe = os.dup(process.stderr.fileno())
        process.stderr.close()
        os.set_blocking(pipe, False)
        self._descriptors.append(pipe)
        loop.add_reader(pipe, self._on_log, pipe)
        if sys.platform == "linux":
            with suppress(OSError):
                self._pidfd = os.pidfd_open(process.pid)
                self._descriptors.append(self._pidfd)
                loop.add_reader(self._pidfd, self._reap)

    def _on_log(self, pipe: int) -> None:
        if not self._read_log(pipe):
            asyncio.get_running_loop().remove_reader(pipe)
            if self._pidfd is None:
                self._reap()

    def _read_log(self, pipe: int) -> bool:
        """Read output from the server. Return False if the pipe is closed."""
        try:
            data = os.read(pipe, 65536)
        except BlockingIOError:
            return True
        if self._log.feed(data):
            self._started.set()
        return bool(data)

    def _reap(self) -> None:
        """Read the exit status of the process, and close the descriptors."""
        assert self._process is not None
        loop = asyncio.get_running_loop()
        if self._process.poll() is None:
            loop.call_later(0.01, self._reap)
            return
        self._read_log(self._descriptors[0])
        for descriptor in self._descriptors:
            loop.remove_reader(descriptor)
            os.close(descriptor)
        self._exited.set()
        self._started.set()
        if not self._expected:
            self._on_exit(f"The Postgres server ended unexpectedly{self._describe_end()}")

    def _describe_end(self) -> str:
        code = self._process.returncode if self._process is not None else 0
        end = f"killed by signal {-code}" if code < 0 else f"exit status {code}"
        return f" ({end}): {self._log.reason()}"


class ServerLog:
    """The last lines of a server's log."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=_KEPT)
        self._partial = b""

    def feed(self, data: bytes) -> bool:
        """Add output from the server. Return whether it reports that connections are accepted."""
        *lines, rest = (self._partial + data).split(b"\n")
        self._partial = rest[:_LINE_LENGTH]
        texts = [line[:_LINE_LENGTH].decode(errors="replace").strip() for line in lines]
        self._lines.extend(text for text in texts if text)
        return any(READY in text for text in texts)

    def reason(self) -> str:
        """Return the last severe message and the message before it, or the last messages."""
        lines = [" ".join(line.split()) for line in self._lines]
        severe = [n for n, line in enumerate(lines) if line.startswith(("FATAL:", "PANIC:"))]
        shown = lines[max(severe[-1] - 1, 0) : severe[-1] + 1] if severe else lines[-_SHOWN:]
        return "; ".join(shown) or "its log is empty"
