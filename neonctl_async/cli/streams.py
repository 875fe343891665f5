"""Standard streams that are closed, broken or full.

Python exits with status 120 if buffered output cannot be written at exit. A program that runs in
:func:`exit_with` exits with its own status instead.
"""

import errno
import io
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

OUTPUT_ERROR: Final = 74
"""The exit status of a program that cannot write its standard output."""
INTERRUPTED: Final = 130
"""The exit status of a program that was interrupted by Ctrl-C."""
BROKEN_PIPE: Final = 141
"""The exit status of a program whose reader has closed the pipe, as after a SIGPIPE."""

_WRITE_ERRORS = {errno.EBADF, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.EPIPE}


class _ErrorStream(io.FileIO):
    """Standard error. It drops what cannot be written: a lost message is no reason to fail."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def exit_with(program: Callable[[], int | None]) -> NoReturn:
    """Run a program and exit with the status that it returns or raises.

    If output cannot be written, the status is ``BROKEN_PIPE`` or ``OUTPUT_ERROR``.
    """
    _open_closed()
    _replace_stderr()
    status: int | str | None
    try:
        status = program()
    except SystemExit as end:
        # Typer and rich replace a BrokenPipeError by an exit with status 1.
        pipe = isinstance(end.__context__, BrokenPipeError)
        status = BROKEN_PIPE if pipe else end.code
    except KeyboardInterrupt:
        status = INTERRUPTED
    except OSError as error:
        if error.errno not in _WRITE_ERRORS:
            _flush_stdout()
            raise
        status = _report(error)
    except BaseException:
        _flush_stdout()  # else Python would fail to flush it, and exit with status 120
        raise
    if (lost := _flush_stdout()) is not None:
        status = status or _report(lost)
    if status == INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a thread may take long to end
    sys.exit(status)


def _flush_stdout() -> OSError | None:
    """Write the buffered output. If that fails, discard the output and return the error."""
    try:
        sys.stdout.flush()
    except OSError as error:
        discard_stdout()
        return error
    return None


def check_stdout() -> None:
    """Raise OSError if standard output is closed. A full disk is noticed only when writing."""
    with suppress(io.UnsupportedOperation):  # a test replaces standard output
        os.write(sys.stdout.fileno(), b"")


def discard_stdout() -> None:
    """Connect standard output to the null device, because writing to it has failed."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _report(error: OSError) -> int:
    """Write a message about lost output, and return the exit status."""
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    sys.stderr.write(f"error: standard output cannot be written: {error}\n")
    return OUTPUT_ERROR


def _open_closed() -> None:
    """Open the null device, in the wrong direction, for each closed stream.

    Reading standard input or writing standard output then fails, as it should. Without this, the
    next socket would get the stream's file descriptor.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY), closefd=False)
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", closefd=False)
    if sys.stderr is None:
        os.open(os.devnull, os.O_WRONLY)


def _replace_stderr() -> None:
    """Make every writer of standard error, dependencies included, use :class:`_ErrorStream`."""
    if sys.platform == "win32" and sys.stderr is not None and sys.stderr.isatty():
        return  # the Windows console is not written through a descriptor
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_ErrorStream(2, "w", closefd=False)),
        encoding=None if sys.stderr is None else sys.stderr.encoding,
        errors="backslashreplace",
        line_buffering=True,
    )
