"""What a caller may listen to: requests, retries, statuses and waits as they happen. Pure."""

import inspect
from collections.abc import Callable

import msgspec

from neonctl_async.errors import ConfigurationError, NeonError
from neonctl_async.models.operations import Operation, OperationRef, OperationStatus


class RequestSent(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A request is being sent.

    ``id`` is its ``X-Request-ID``, ``url`` its URL without the query, ``route`` the method and
    the path with ``{id}`` for each parameter. A poll is a look at operations that are awaited.
    """

    id: str
    method: str
    url: str
    route: str
    is_poll: bool


class ResponseReceived(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A request has ended, ``seconds`` after it was sent.

    ``status`` is that of the answer. None came if it is None: ``error`` tells why, or is None as
    well where the call was cancelled or the client closed.
    """

    request: RequestSent
    status: int | None
    error: NeonError | None
    seconds: float


class RetryPlanned(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A call has failed in passing, and is to be tried again.

    ``attempt`` counts the tries so far. The next one comes in ``delay`` seconds, or for a project
    that is locked (423) as soon as it is free.
    """

    error: NeonError
    attempt: int
    delay: float


class StatusChanged(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """An awaited operation was seen with another status than before, which is None at first."""

    operation: Operation
    previous: OperationStatus | None


class WaitStarted(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A wait has begun, with at most ``timeout`` seconds to take."""

    operations: tuple[OperationRef, ...]
    timeout: float | None


class WaitEnded(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A wait has ended, ``seconds`` after its begin.

    ``unsuccessful`` and ``pending`` count its operations; ``error`` is what ended it before all
    had ended, None if that was the caller's doing.
    """

    wait: WaitStarted
    unsuccessful: int
    pending: int
    error: NeonError | None
    seconds: float


class Hooks(msgspec.Struct, frozen=True, kw_only=True):
    """Functions to be called as things happen.

    They run on the event loop, within the call that they tell of, and must not block. What they
    raise is logged, and breaks no call. Raises ConfigurationError for a coroutine function.
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
            if not callable(hook) or any(
                map(inspect.iscoroutinefunction, (hook, type(hook).__call__))
            ):
                raise ConfigurationError(f"Hooks.{name} is {hook!r}: expected a plain function")
