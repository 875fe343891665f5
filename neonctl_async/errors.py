"""Every exception that this library raises of its own.

::

    NeonError
    ├── ConfigurationError (also ValueError)    a setting is missing or invalid
    ├── ClientClosedError                       the client was closed
    ├── APIError                                the API returned an error status
    │   ├── AuthenticationError                 401
    │   ├── PermissionDeniedError               403
    │   ├── NotFoundError                       404
    │   ├── ConflictError                       409
    │   ├── LockedError                         423
    │   ├── RateLimitedError                    429
    │   └── ServerError                         5xx
    ├── TransportError                          no response arrived
    │   ├── ConnectionFailedError               nothing was sent
    │   ├── ConnectionLostError                 the connection broke
    │   └── RequestTimeoutError (also TimeoutError)
    ├── InvalidResponseError                    the response cannot be read
    └── WaitError                               a wait was not successful
        ├── OperationFailedError                operations were unsuccessful
        └── WaitTimeoutError (also TimeoutError)

Bad arguments are a plain ValueError or TypeError. Cancellation is never converted.
"""

from collections.abc import Sequence
from http import HTTPStatus

from neonctl_async.models.operations import Operation, OperationRef


class NeonError(Exception):
    """Base of all errors of this library.

    ``result`` is what the request had already created when the error ended the wait that
    ``wait=`` asked for, with the newest operation records seen; else None. ``maybe_delivered``
    tells whether the platform may have done what the failed request asks for, all the same.
    """

    result: object = None
    maybe_delivered: bool = False

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions with keyword-only arguments are otherwise neither copied nor pickled.
        return (_rebuild, (type(self), self.args), self.__dict__)


def _rebuild(cls: type[NeonError], args: tuple[object, ...]) -> NeonError:
    error = cls.__new__(cls)
    error.args = args
    return error


class ConfigurationError(NeonError, ValueError):
    """A setting is missing or cannot work. Raised before any request is sent."""


class ClientClosedError(NeonError):
    """The client was closed before the call, or during it."""

    def __init__(self, message: str, *, maybe_delivered: bool = False) -> None:
        super().__init__(f"{message}{_MAYBE if maybe_delivered else ''}")
        self.maybe_delivered = maybe_delivered


class APIError(NeonError):
    """The platform answered with an error status.

    ``request_id`` is the platform's id of the request, else the ``X-Request-ID`` that was sent.
    ``retry_after`` is in seconds from the answer, None if the answer had no ``Retry-After``.
    """

    def __init__(
        self,
        *,
        status: int,
        message: str,
        method: str,
        path: str,
        code: str = "",
        request_id: str = "",
        retry_after: float | None = None,
    ) -> None:
        # A refusal has changed nothing, and neither has what says to come again later.
        is_refusal = 400 <= status < 500 and status != 408
        self.maybe_delivered: bool = not is_refusal and status != 503
        fate = _fate(method) if self.maybe_delivered else ""
        super().__init__(f"{method} {path}: {status} {_phrase(status)}: {message}{fate}")
        self.status = status
        self.code = code
        self.message = message
        self.request_id = request_id
        self.method = method
        self.path = path
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.args[0]} (request {self.request_id})" if self.request_id else self.args[0]

    @classmethod
    def for_status(cls, status: int) -> "type[APIError]":
        """The class of the tree above that stands for ``status``."""
        if status in _BY_STATUS:
            return _BY_STATUS[status]
        return ServerError if status >= HTTPStatus.INTERNAL_SERVER_ERROR else APIError


class AuthenticationError(APIError):
    """401: the key is missing, invalid or revoked. Never retried."""


class PermissionDeniedError(APIError):
    """403: the key is valid but may not do this."""


class NotFoundError(APIError):
    """404: it does not exist, or the key does not reach it."""


class ConflictError(APIError):
    """409: the name is taken, or the state of the object does not allow it."""


class LockedError(APIError):
    """423: conflicting operations run on the project; nothing was changed."""


class RateLimitedError(APIError):
    """429: more requests than the platform allows; nothing was changed."""


class ServerError(APIError):
    """5xx: the platform, or a proxy in front of it, failed."""


_MAYBE = "; it may have been carried out"
_BY_STATUS: dict[int, type[APIError]] = {
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    423: LockedError,
    429: RateLimitedError,
}


def _fate(method: str) -> str:
    """What is said of a request that may have been done; a GET does nothing."""
    return "" if method == "GET" else _MAYBE


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "unknown status"


class TransportError(NeonError):
    """No answer came. ``request_id`` is the ``X-Request-ID`` that was sent."""

    def __init__(
        self, message: str, *, method: str, path: str, request_id: str, maybe_delivered: bool
    ) -> None:
        fate = _fate(method) if maybe_delivered else "; nothing was sent"
        super().__init__(f"{method} {path}: {message}{fate} (request {request_id})")
        self.method = method
        self.path = path
        self.request_id = request_id
        self.maybe_delivered = maybe_delivered


class ConnectionFailedError(TransportError):
    """No connection could be made: refused, no such host, TLS refused. Nothing was sent."""


class ConnectionLostError(TransportError):
    """The connection broke after the request was, or may have been, sent."""


class RequestTimeoutError(TransportError, TimeoutError):
    """The time for connecting, or for the whole request, ran out."""


class InvalidResponseError(NeonError):
    """An answer of success came whose body cannot be read as what was asked for.

    ``excerpt`` is the first 200 characters of the body, secrets hidden.
    """

    maybe_delivered = True

    def __init__(
        self, reason: str, *, method: str, path: str, status: int, request_id: str, excerpt: str
    ) -> None:
        super().__init__(
            f"{method} {path}: {status} with a body that cannot be read: {reason}; "
            f"it begins {excerpt!r}{_fate(method)} (request {request_id})"
        )
        self.method = method
        self.path = path
        self.status = status
        self.request_id = request_id
        self.excerpt = excerpt


class WaitError(NeonError):
    """A wait ended without success.

    ``settled`` holds the final records, in the order given; ``pending`` the newest record, or
    else the reference, of each operation that had not ended. Both can be waited on again.
    """

    def __init__(
        self,
        message: str,
        *,
        settled: Sequence[Operation],
        pending: Sequence[Operation | OperationRef],
    ) -> None:
        super().__init__(message)
        self.settled: list[Operation] = list(settled)
        self.pending: list[Operation | OperationRef] = list(pending)


class OperationFailedError(WaitError):
    """Operations ended unsuccessfully. ``failed`` holds their records, also part of ``settled``."""

    def __init__(
        self,
        *,
        failed: Sequence[Operation],
        settled: Sequence[Operation],
        pending: Sequence[Operation | OperationRef],
    ) -> None:
        super().__init__(
            f"{len(failed)} of {len(settled) + len(pending)} operations ended unsuccessfully: "
            f"{_list(failed)}",
            settled=settled,
            pending=pending,
        )
        self.failed: list[Operation] = list(failed)


class WaitTimeoutError(WaitError, TimeoutError):
    """The deadline of a wait passed, ``timeout`` seconds after its begin.

    ``last_error`` is the newest failure of a poll, if any.
    """

    def __init__(
        self,
        *,
        timeout: float,
        settled: Sequence[Operation],
        pending: Sequence[Operation | OperationRef],
        last_error: NeonError | None,
    ) -> None:
        last = f"; last error: {last_error}" if last_error else ""
        super().__init__(
            f"{len(pending)} of {len(settled) + len(pending)} operations had not ended after "
            f"{timeout:g} s: {_list(pending)}{last}",
            settled=settled,
            pending=pending,
        )
        self.timeout = timeout
        self.last_error = last_error


_SHOWN = 3


def _list(operations: Sequence[Operation | OperationRef]) -> str:
    shown = "; ".join(_describe(operation) for operation in operations[:_SHOWN])
    more = len(operations) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _describe(operation: Operation | OperationRef) -> str:
    if isinstance(operation, OperationRef):
        return f"{operation.id} in {operation.project_id}"
    reason = f": {operation.error}" if operation.error else ""
    return (
        f"{operation.action} {operation.id} in {operation.project_id} is {operation.status}{reason}"
    )
