"""What the command line's exit codes mean, and which one an error leads to."""

from enum import IntEnum

from neonctl_async import _streams
from neonctl_async.errors import (
    ConfigurationError,
    NeonError,
    OperationFailedError,
    WaitTimeoutError,
)
from neonctl_async.waiting.status import UNSUCCESSFUL


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    OPERATION_FAILED = 1
    USAGE = 2
    API_ERROR = 3
    TIMED_OUT = 4
    OUTPUT_ERROR = _streams.OUTPUT_ERROR
    """Standard output could not be written: it is closed, or the disk is full."""
    INTERRUPTED = 130
    BROKEN_PIPE = _streams.BROKEN_PIPE
    """Standard output was closed, as by ``head``: what a shell shows of a SIGPIPE."""


def exit_code(error: Exception) -> ExitCode:
    """The code for what a command raised: bad arguments are a ValueError."""
    match error:
        case OperationFailedError():
            return ExitCode.OPERATION_FAILED
        case WaitTimeoutError() if any(one.status in UNSUCCESSFUL for one in error.settled):
            return ExitCode.OPERATION_FAILED  # which waiting on does not change
        case WaitTimeoutError():
            return ExitCode.TIMED_OUT
        case NeonError() if not isinstance(error, ConfigurationError):
            return ExitCode.API_ERROR
        case _:
            return ExitCode.USAGE
