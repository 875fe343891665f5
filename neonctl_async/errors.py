"""The exceptions of this library.

::

    NeonError
    ├── ConfigurationError (also ValueError)    a setting is missing or invalid
    ├── ClientClosedError                       the client was closed
    ├── APIError                                the API returned an error status
    │   ├── AuthenticationError                 401
    │   ├── PermissionDeniedError               403
    │   ├── NotFoundError                       404
    │   ├── ConflictError                       409
    │   │   └── MismatchError                   the existing object differs from the requested one
    │   ├── LockedError                         423
    │   ├── RateLimitedError                    429
    │   └── ServerError                         5xx
    ├── TransportError                          no response arrived
    │   ├── ConnectionFailedError               nothing was sent
    │   ├── ConnectionLostError                 the connection broke
    │   └── RequestTimeoutError (also TimeoutError)
    ├── InvalidResponseError                    the response cannot be used
    ├── LookupFailedError (also LookupError)    no object has the name
    └── WaitError                               a wait was not successful
        ├── OperationFailedError                operations were unsuccessful
        └── WaitTimeoutError (also TimeoutError)
            ├── StateTimeoutError           an object did not reach a state
            └── NotConnectableError         a compute does not accept connections

Invalid arguments raise a plain ValueError or TypeError. Cancellation is never converted.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Literal

from neonctl_async.models.operations import (
    Operation,
    OperationRef,
    OperationsResponse,
    list_failures,
    list_operations,
)


class NeonError(Exception):
    """The base class of all errors of this library."""

    result: OperationsResponse | None = None
    """If a call with ``wait=`` succeeded but its wait failed: the response, such as a
    ``BranchCreated``, with the latest operation records. Otherwise None."""
    maybe_delivered: bool = False
    """True if Neon may have executed the failed request."""
    hint: str = ""
    """The client's guess at the cause of the error, which is also in the message; may be empty."""

    def __reduce__(self) -> tuple[object, ...]:
        # By default, exceptions with keyword-only arguments cannot be copied or pickled.
        return (_rebuild, (type(self), self.args), self.__dict__)


def _rebuild(cls: type[NeonError], args: tuple[object, ...]) -> NeonError:
    error = cls.__new__(cls)
    error.args = args
    return error


class ConfigurationError(NeonError, ValueError):
    """A setting is missing or invalid. Raised before any request is sent."""


class ClientClosedError(NeonError):
    """The client was closed before or during the call."""

    def __init__(self, message: str, *, maybe_delivered: bool = False) -> None:
        super().__init__(f"{message}{_MAYBE_EXECUTED if maybe_delivered else ''}")
        self.maybe_delivered = maybe_delivered


class APIError(NeonError):
    """Neon responded with an error status.

    ``status`` is the HTTP status; ``code`` and ``message`` are Neon's description of the error.
    ``reason`` is a fixed word for the cause, such as ``invalid_cursor``, or empty, because only
    some endpoints send a reason. ``method`` and ``path`` identify the request. ``request_id`` is
    Neon's id of the request, or the ``X-Request-ID`` that the client sent. ``retry_after`` is the
    ``Retry-After`` of the response in seconds, or None.
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
        hint: str = "",
        reason: str = "",
    ) -> None:
        # A 4xx other than 408 and a 501 reject the request; a 503 postpones it.
        is_unchanged = (400 <= status < 500 and status != 408) or status in {501, 503}
        self.maybe_delivered: bool = not is_unchanged
        note = _execution_note(method) if self.maybe_delivered else ""
        more = (f" ({reason})" if reason else "") + (f"; {hint}" if hint else "")
        super().__init__(f"{method} {path}: {status} {_phrase(status)}: {message}{more}{note}")
        self.status = status
        self.code = code
        self.message = message
        self.reason = reason
        self.request_id = request_id
        self.method = method
        self.path = path
        self.retry_after = retry_after
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.args[0]} (request {self.request_id})" if self.request_id else self.args[0]

    @classmethod
    def for_status(cls, status: int) -> "type[APIError]":
        """Return the class for an HTTP status."""
        default = ServerError if status >= HTTPStatus.INTERNAL_SERVER_ERROR else APIError
        return _BY_STATUS.get(status, default)


class AuthenticationError(APIError):
    """401: the key is missing, invalid or revoked. Never retried."""


class PermissionDeniedError(APIError):
    """403: the key is valid, but may not make this request."""


class NotFoundError(APIError):
    """404: the object does not exist, or the key gives no access to it."""


class ConflictError(APIError):
    """409: the name is taken, or the state of the object does not allow the request."""


class MismatchError(ConflictError):
    """The object requested from ``ensure`` exists, but differs from the request.

    ``what`` names the object, and ``existing`` is its record. ``differences`` contains a sentence
    for each difference. Nothing was changed or created. ``advice`` is the next step that the
    message suggests.
    """

    def __init__(
        self,
        what: str,
        *,
        existing: object,
        differences: Sequence[str],
        path: str,
        advice: str = (
            "request the existing settings, change it in place with `update`, or use another name"
        ),
    ) -> None:
        message = (
            f"{what} exists, but differs from the request: {'; '.join(differences)}. Nothing was "
            f"changed: {advice}"
        )
        super().__init__(status=HTTPStatus.CONFLICT, message=message, method="POST", path=path)
        Exception.__init__(self, message)
        self.what = what
        self.existing = existing
        self.differences: tuple[str, ...] = tuple(differences)


class LockedError(APIError):
    """423: conflicting operations are running on the project. Nothing was changed."""


class RateLimitedError(APIError):
    """429: the account has exceeded its rate limit. Nothing was changed."""


class ServerError(APIError):
    """5xx: Neon, or a proxy in front of it, failed."""


_MAYBE_EXECUTED = "; Neon may have executed the request"
_BY_STATUS: dict[int, type[APIError]] = {
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    423: LockedError,
    429: RateLimitedError,
}


def _execution_note(method: str) -> str:
    """Return the note for a request that may have been executed: empty for a GET."""
    return "" if method == "GET" else _MAYBE_EXECUTED


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "unknown status"


class TransportError(NeonError):
    """No response arrived.

    ``method`` and ``path`` identify the request; ``request_id`` is the ``X-Request-ID`` that the
    client sent.
    """

    def __init__(
        self, message: str, *, method: str, path: str, request_id: str, maybe_delivered: bool
    ) -> None:
        note = _execution_note(method) if maybe_delivered else "; nothing was sent"
        super().__init__(f"{method} {path}: {message}{note} (request {request_id})")
        self.method = method
        self.path = path
        self.request_id = request_id
        self.maybe_delivered = maybe_delivered


class ConnectionFailedError(TransportError):
    """Connecting failed: refused, unknown host or TLS error. Nothing was sent."""


class ConnectionLostError(TransportError):
    """The connection broke after the request was sent or may have been sent."""


class RequestTimeoutError(TransportError, TimeoutError):
    """The connection, the response or the whole request took longer than its timeout."""


class InvalidResponseError(NeonError):
    """The response reports success, but its body is unreadable or describes another object.

    ``status`` is the HTTP status; ``method`` and ``path`` identify the request. ``request_id`` is
    Neon's id of the request, or the ``X-Request-ID`` that the client sent. ``excerpt`` is the first
    200 characters of the body, with secrets hidden. ``request_id`` and ``excerpt`` are empty if the
    body was readable but describes another object.
    """

    maybe_delivered = True

    def __init__(
        self,
        reason: str,
        *,
        method: str,
        path: str,
        status: int,
        request_id: str = "",
        excerpt: str = "",
        hint: str = "",
    ) -> None:
        start = f"; it starts with {excerpt!r}" if request_id else ""
        hinted = f"; {hint}" if hint else ""
        request = f" (request {request_id})" if request_id else ""
        super().__init__(
            f"{method} {path}: {status}, but the body cannot be used: {reason}{start}"
            f"{hinted}{_execution_note(method)}{request}"
        )
        self.method = method
        self.path = path
        self.status = status
        self.request_id = request_id
        self.excerpt = excerpt
        self.hint = hint


class LookupFailedError(NeonError, LookupError):
    """No object has the name, the project has no default branch, or a response contains no URI."""


class WaitError(NeonError):
    """A wait was not successful.

    ``settled`` contains the final records of the finished operations, in the requested order.
    ``pending`` contains the latest record of each other operation, or its reference if no record
    was read. You can pass both to another wait.
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
    """Operations failed. ``failed`` contains their records, which are also in ``settled``."""

    def __init__(
        self,
        *,
        failed: Sequence[Operation],
        settled: Sequence[Operation],
        pending: Sequence[Operation | OperationRef],
    ) -> None:
        total = len(settled) + len(pending)
        super().__init__(
            f"{len(failed)} of {total} operations failed: {list_operations(failed)}",
            settled=settled,
            pending=pending,
        )
        self.failed: list[Operation] = list(failed)


def _seconds(timeout: float) -> str:
    """Return a timeout as text, rounded: 29.9844 becomes 30."""
    return f"{round(timeout, 1 if timeout >= 1 else 3):g}"


class WaitTimeoutError(WaitError, TimeoutError):
    """Operations did not finish within ``timeout`` seconds. Others may have failed.

    ``last_error`` is the error of the last poll that failed, or None.
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
            f"{len(pending)} of {len(settled) + len(pending)} operations did not finish within "
            f"{_seconds(timeout)} s: {list_operations(pending)}{list_failures(settled)}{last}",
            settled=settled,
            pending=pending,
        )
        self.timeout = timeout
        self.last_error = last_error


class StateTimeoutError(WaitTimeoutError):
    """An object did not reach a state within ``timeout`` seconds.

    ``what`` describes the object, and ``wanted`` is the expected state. ``state`` is the last known
    state, and ``pending_state`` the state that the object was changing to; both are None if no
    response arrived. ``pending`` and ``settled`` contain operations only if the wait was for all
    operations of a project.
    """

    def __init__(
        self,
        *,
        what: str,
        wanted: str,
        state: str | None,
        pending_state: str | None,
        timeout: float,
        settled: Sequence[Operation],
        pending: Sequence[Operation | OperationRef],
        last_error: NeonError | None,
    ) -> None:
        super().__init__(timeout=timeout, settled=settled, pending=pending, last_error=last_error)
        seen = "its state could not be read" if state is None else f"it is {state!r}"
        changing = f", changing to {pending_state!r}" if pending_state else ""
        running = f"; pending: {list_operations(pending)}" if pending else ""
        last = f"; last error: {last_error}" if last_error else ""
        goal = f"{what} did not become {wanted!r} within {_seconds(timeout)} s"
        Exception.__init__(self, f"{goal}: {seen}{changing}{list_failures(settled)}{running}{last}")
        self.what = what
        self.wanted = wanted
        self.state = state
        self.pending_state = pending_state


class NotConnectableError(WaitTimeoutError):
    """A compute did not accept connections within ``timeout`` seconds, or never will.

    ``stage`` is the step of the connection to ``host`` that failed last: ``dns``, ``tcp``, ``tls``
    or ``startup``; ``reason`` describes the failure. ``is_final`` is True if a longer wait would
    not help. ``others`` contains the ids of further computes that do not accept connections.
    """

    def __init__(
        self,
        *,
        endpoint_id: str,
        host: str,
        stage: Literal["dns", "tcp", "tls", "startup"],
        reason: str,
        is_final: bool,
        timeout: float,
        others: Sequence[str] = (),
    ) -> None:
        super().__init__(timeout=timeout, settled=(), pending=(), last_error=None)
        time = f"is not connectable after {_seconds(timeout)} s"
        problem = "is never connectable" if is_final else time
        shown = ", ".join(others[:_MAX_OTHERS])
        rest = len(others) - _MAX_OTHERS
        more = f"; nor are {shown}{f' and {rest} more' if rest > 0 else ''}" if others else ""
        Exception.__init__(self, f"compute {endpoint_id} {problem} ({stage}): {reason}{more}")
        self.endpoint_id: str = endpoint_id
        self.host: str = host
        self.stage: Literal["dns", "tcp", "tls", "startup"] = stage
        self.reason: str = reason
        self.is_final: bool = is_final
        self.others: list[str] = list(others)


_MAX_OTHERS = 10
