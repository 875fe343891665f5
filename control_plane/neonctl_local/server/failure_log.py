"""Logs a failure of a background loop only once, however often the loop tries again."""

import logging
from types import TracebackType

from neonctl_local.errors import StorageFullError
from neonctl_local.postgres.errors import ClusterError


class FailureLog:
    """A context manager that suppresses the exceptions of a block that is repeated later.

    It logs the first of several failures of the same kind in a row. An expected exception is logged
    without a traceback. A full disk is not logged here, because the database logs it.
    """

    def __init__(self, logger: logging.Logger, message: str) -> None:
        self._logger = logger
        self._message = message
        self._last: type[BaseException] | None = None

    def __enter__(self) -> None:
        """Enter the block."""

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Log and suppress an exception, unless it cancels the task."""
        if exc is not None and not isinstance(exc, Exception):
            return False
        last, self._last = self._last, exc_type
        if exc_type is last or isinstance(exc, StorageFullError):
            return True
        if exc is None:
            self._logger.info("%s: it succeeds again", self._message)
        elif isinstance(exc, ClusterError):
            self._logger.warning("%s: %s", self._message, exc)
        else:
            self._logger.error(self._message, exc_info=exc)
        return True
