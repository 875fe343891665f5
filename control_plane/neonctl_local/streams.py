"""Handles standard streams of ``python -m neonctl_local`` that are closed, broken or full."""

import os
import sys
from collections.abc import Callable
from typing import NoReturn, TextIO

_OUTPUT_ERROR = 74
_INTERRUPTED = 130
_BROKEN_PIPE = 141


def exit_with(program: Callable[[], int]) -> NoReturn:
    """Run a program and exit with its status.

    If output cannot be written at the end, the status is 74, or 141 if the reader is gone. Python
    would exit with 120.
    """
    _open_closed()
    status: int | str | None
    try:
        status = program()
    except SystemExit as end:
        status = end.code
    except KeyboardInterrupt:
        status = _INTERRUPTED
    except BrokenPipeError:
        status = _BROKEN_PIPE
    lost = _flush(sys.stdout)
    if isinstance(lost, BrokenPipeError):
        status = status or _BROKEN_PIPE
    elif lost is not None:
        sys.stderr.write(f"error: standard output cannot be written: {lost}\n")
        status = status or _OUTPUT_ERROR
    _flush(sys.stderr)
    sys.exit(status)


def _flush(stream: TextIO) -> OSError | None:
    """Write what is buffered. If that fails, discard it and return the error."""
    try:
        stream.flush()
    except OSError as error:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
        return error
    return None


def _open_closed() -> None:
    """Open the null device for each closed stream.

    Otherwise, the next socket would get the file descriptor of the stream. Standard input and
    output are opened in the wrong direction, so that their use still fails.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY), closefd=False)
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", closefd=False)
