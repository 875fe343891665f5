"""The exit codes of the command line, and the code of each error."""

from enum import IntEnum

from neonctl_async.cli import streams
from neonctl_async.errors import (
    ConfigurationError,
    NeonError,
    NotConnectableError,
    OperationFailedError,
    WaitTimeoutError,
)
from neonctl_async.models.operations import UNSUCCESSFUL


class ExitCode(IntEnum):
    """The exit code of a command."""

    DONE = 0
    OPERATION_FAILED = 1
    USAGE = 2
    API_ERROR = 3
    TIMED_OUT = 4
    OUTPUT_ERROR = streams.OUTPUT_ERROR
    """Standard output could not be written: it is closed, or the disk is full."""
    INTERRUPTED = streams.INTERRUPTED
    BROKEN_PIPE = streams.BROKEN_PIPE
    """Standard output was closed, e.g. by ``head``: the status of a process killed by SIGPIPE."""


def exit_code(error: Exception) -> ExitCode:
    """Return the exit code of an error. A ValueError means a wrong argument."""
    match error:
        case OperationFailedError():
            return ExitCode.OPERATION_FAILED
        case WaitTimeoutError() if any(one.status in UNSUCCESSFUL for one in error.settled):
            return ExitCode.OPERATION_FAILED  # a longer wait would not change it
        case NotConnectableError() if error.is_final:
            return ExitCode.OPERATION_FAILED
        case WaitTimeoutError():
            return ExitCode.TIMED_OUT
        case NeonError() if not isinstance(error, ConfigurationError):
            return ExitCode.API_ERROR
        case _:
            return ExitCode.USAGE
