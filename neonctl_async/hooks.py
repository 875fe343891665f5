"""Hooks: functions to call on requests, retries, status changes and waits. Pure: no I/O."""

from collections.abc import Callable

import msgspec

from neonctl_async._internal import is_coroutine_function, shorten
from neonctl_async.errors import ConfigurationError, NeonError
from neonctl_async.models.operations import Operation, OperationRef, OperationStatus


class RequestSent(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A request is about to be sent.

    ``id`` is its ``X-Request-ID``, and ``url`` is its URL without the query. ``route`` is the
    method and the path with ``{id}`` in place of each parameter. ``is_poll`` is True for polls of
    pending operations.
    """

    id: str
    method: str
    url: str
    route: str
    is_poll: bool


class ResponseReceived(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A request is over, ``seconds`` after it was sent, with or without a response.

    ``status`` is the status of the response. Without a response, ``status`` is None and ``error``
    is the reason. If the call was cancelled or the client was closed, both are None.
    """

    request: RequestSent
    status: int | None
    error: NeonError | None
    seconds: float


class RetryPlanned(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A call had a transient failure, and the client is about to retry it.

    ``attempt`` is the number of attempts so far. The next one starts in ``delay`` seconds. After
    a 423, it starts as soon as the running operations finish, if half of the time left suffices.
    """

    error: NeonError
    attempt: int
    delay: float


class StatusChanged(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A pending operation has a new status. ``previous`` is None for the first known status."""

    operation: Operation
    previous: OperationStatus | None


class WaitStarted(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A wait starts. ``timeout`` is its time limit in seconds, or None.

    A wait for a state or for connections has a ``goal``, such as ``branch br-1 in p-1 is ready``,
    instead of operations.
    """

    operations: tuple[OperationRef, ...]
    timeout: float | None
    goal: str = ""


class WaitEnded(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A wait is over, ``seconds`` after its start.

    ``unsuccessful`` and ``pending`` count operations. ``error`` is the failure that ended the wait
    early, or None if all operations finished or the caller ended the wait.
    """

    wait: WaitStarted
    unsuccessful: int
    pending: int
    error: NeonError | None
    seconds: float


class Hooks(msgspec.Struct, frozen=True, kw_only=True):
    """Functions that a client calls on requests, retries, status changes and waits.

    A hook runs on the event loop, inside the call that caused the event, so it must not block. An
    exception raised by a hook is logged and does not affect the call. Raises ConfigurationError
    for a coroutine function.
    """

    on_request: Callable[[RequestSent], object] | None = None
    on_response: Callable[[ResponseReceived], object] | None = None
    on_retry: Callable[[RetryPlanned], object] | None = None
    on_status: Callable[[StatusChanged], object] | None = None
    on_wait_started: Callable[[WaitStarted], object] | None = None
    on_wait_ended: Callable[[WaitEnded], object] | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            hook = getattr(self, name)
            if hook is None:
                continue
            if not callable(hook) or is_coroutine_function(hook):
                raise ConfigurationError(
                    f"Hooks.{name} is {shorten(hook)}: expected a plain function"
                )
