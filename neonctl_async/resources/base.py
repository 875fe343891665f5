"""The base of all resources, the runner of their calls, and checks of their arguments."""

from collections.abc import Callable, Collection, Coroutine, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, TypeVar, cast, overload

import msgspec
from msgspec import UNSET, UnsetType

from neonctl_async._internal import is_coroutine_function, shorten
from neonctl_async.config import Config, RetryPolicy
from neonctl_async.errors import NeonError, WaitError
from neonctl_async.models.base import Pagination
from neonctl_async.models.operations import OperationsResponse
from neonctl_async.pagination import Page, Paginator
from neonctl_async.transport.calls import Deadline
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.transport.download import Download
from neonctl_async.transport.encoding import QueryValue, check_aware
from neonctl_async.transport.hints import LEAVE_OUT, wrong_id
from neonctl_async.transport.protocol import Request, request
from neonctl_async.transport.session import Session
from neonctl_async.waiting.locks import ProjectLocks
from neonctl_async.waiting.source import OperationSource
from neonctl_async.waiting.states.shared_reads import SharedReads
from neonctl_async.waiting.waiter import Wait, Waiter, WaitOptions, wait_options

if TYPE_CHECKING:
    from neonctl_async.connections.connector import Connector
    from neonctl_async.waiting.states.waits import StateWaits


class _PageResponse(Protocol):
    @property
    def pagination(self) -> Pagination | None: ...


ResponseT = TypeVar("ResponseT")
RecordT = TypeVar("RecordT")
T = TypeVar("T")
ExpiryT = TypeVar("ExpiryT", bound=datetime | UnsetType | None)
PageT = TypeVar("PageT", bound=_PageResponse)
OperationsResponseT = TypeVar("OperationsResponseT", bound=OperationsResponse)

NO_DELETED_COMPUTE: Final = "the call deletes the computes: use wait=True"
"""The reason why a deletion leaves no compute to connect to."""

LONGEST_LIFETIME: Final = timedelta(days=30)
"""The longest lifetime of a branch on Neon, counted from the request that sets it."""

SortOrder: TypeAlias = Literal["asc", "desc"]


def drop_unset(nullable: Collection[str] = (), /, **fields: object) -> dict[str, object]:
    """Return the body without its unset fields.

    Raises TypeError, naming the field, for a record in place of its id or name, and for None in a
    field that is not ``nullable``. Raises ValueError for a datetime without a time zone.
    """
    return {
        name: None if value is None and name in nullable else _plain(name, value)
        for name, value in fields.items()
        if value is not UNSET
    }


def check_settings(record: type, settings: Mapping[str, object]) -> None:
    """Raise TypeError for a keyword that the record, a TypedDict, does not define."""
    unknown = [name for name in settings if name not in record.__annotations__]
    if unknown:
        raise TypeError(f"unexpected keyword argument {unknown[0]!r}")


def checked_expiry(expires_at: ExpiryT, now: datetime) -> ExpiryT:
    """Return the expiry of a branch, rounded down to the second, as Neon stores it.

    Raises ValueError for a time without a time zone, or beyond the longest lifetime.
    """
    if not isinstance(expires_at, datetime):
        return expires_at
    if check_aware("expires_at", expires_at) - now > LONGEST_LIFETIME:
        latest = (now + LONGEST_LIFETIME).isoformat(timespec="seconds")
        raise ValueError(
            f"expires_at is {expires_at.isoformat()}: Neon refuses more than "
            f"{LONGEST_LIFETIME.days} days ahead. Use {latest} or earlier, and set a later time "
            "before the branch expires"
        )
    return expires_at.replace(microsecond=0)


def _plain(name: str, value: object) -> object:
    match value:
        case datetime():
            return check_aware(name, value)
        case None:
            raise TypeError(f"{name} is None: pass a value, or {LEAVE_OUT}")
        case Mapping():
            return dict(cast("Mapping[str, object]", value))
        case msgspec.Struct() if name.endswith(("_id", "name")):
            raise TypeError(wrong_id(name, value))
        case _:
            return value


@overload
def as_list(name: str, values: Sequence[T]) -> list[T]: ...


@overload
def as_list(name: str, values: Sequence[T] | UnsetType) -> list[T] | UnsetType: ...


def as_list(name: str, values: Sequence[T] | UnsetType) -> list[T] | UnsetType:
    """Return the values of a list parameter. Raise TypeError for a string."""
    if isinstance(values, UnsetType):
        return UNSET
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
        hint = f"; {LEAVE_OUT}" if values is None else ""  # pyright: ignore[reportUnnecessaryComparison] - as above
        raise TypeError(f"{name} is {shorten(values)}: expected a list, as in {name}=[…]{hint}")
    return list(values)


def check_name(parameter: str, value: str) -> None:
    """Raise TypeError or ValueError unless ``value`` is a non-empty string."""
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
        raise TypeError(f"{parameter} is {shorten(value)}: expected a string")
    if not value:
        raise ValueError(f"{parameter} is empty: expected a name")


def check_within(
    name: str, value: int | UnsetType, minimum: int, maximum: int | None = None
) -> None:
    """Raise TypeError or ValueError unless ``value`` is unset or within the limits."""
    if isinstance(value, UnsetType):
        return
    limits = f"{minimum} or more" if maximum is None else f"{minimum} to {maximum}"
    if isinstance(value, bool) or not isinstance(value, int):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
        raise TypeError(f"{name} is {shorten(value)}: expected an int, {limits}")
    if value < minimum or (maximum is not None and value > maximum):
        raise ValueError(f"{name} is {value}: expected {limits}")


def check_plain_function(name: str, function: object) -> None:
    """Raise TypeError for a coroutine function, which would not be awaited."""
    if is_coroutine_function(function):
        raise TypeError(f"{name} is {function!r}, a coroutine function: expected a plain function")


def checked_wait(wait: Wait, *, no_compute: str) -> WaitOptions | None:
    """Return the options of a wait, or None for False.

    ``no_compute`` is the reason, if any, why there is no compute to connect to; a wait for
    connections then raises ValueError.
    """
    options = wait_options(wait)
    if options is not None and options.connect and no_compute:
        raise ValueError(f"wait requires a connection, but {no_compute}")
    return options


class CallRunner:
    """Runs the calls of all resources of a client: sends requests, and waits for operations.

    It holds what the calls share until the client is closed.
    """

    def __init__(
        self,
        session: Session,
        waiter: Waiter,
        source: OperationSource,
        config: Config,
        dispatcher: HookDispatcher,
    ) -> None:
        self.waiter = waiter
        self.retry: RetryPolicy = config.retry
        self.shared_lists: SharedReads = SharedReads("a call to ensure")
        """The list requests that concurrent calls share."""
        self._session = session
        self._locks = ProjectLocks(source, waiter)
        self._source = source
        self._config = config
        self._dispatcher = dispatcher
        self._is_closed = False

    # Few programs use the next two, and their modules are slow to import.
    @cached_property
    def states(self) -> "StateWaits":
        """The object that waits for states of branches, computes and projects."""
        from neonctl_async.waiting.states.waits import StateWaits

        return StateWaits(self._source, self._config.polling, self.waiter, self._dispatcher)

    @cached_property
    def connector(self) -> "Connector":
        """The object that waits until computes accept connections."""
        from neonctl_async.connections.connector import Connector

        connector = Connector(self._session, self._config.polling, self._dispatcher)
        if self._is_closed:
            connector.close()
        return connector

    async def aclose(self) -> None:
        """End all waits with ClientClosedError."""
        self._is_closed = True
        created = vars(self)
        if "connector" in created:
            self.connector.close()
        if "states" in created:
            await self.states.aclose()
        await self.shared_lists.aclose()
        await self.waiter.aclose()

    def send(self, request: Request[ResponseT]) -> Coroutine[None, None, ResponseT]:
        """Send a request. If its project is locked (423), wait for the lock and retry."""
        project_id = None if request.method == "GET" else request.project_id
        lock = None if project_id is None else partial(self._locks.of, project_id)
        return self._session.send(request, lock)

    def download(self, request: Request[Download]) -> AbstractAsyncContextManager[Download]:
        """Send a request whose response is a stream."""
        return self._session.download(request)

    async def start(
        self, request: Request[OperationsResponseT], *, wait: Wait, no_compute: str = ""
    ) -> OperationsResponseT:
        """Send a request that starts operations. With ``wait``, wait until they have finished.

        ``no_compute`` is the reason, if any, why the request leaves no compute to connect to; a
        wait for connections then raises ValueError before the request.
        """
        options = checked_wait(wait, no_compute=no_compute)
        response = await self.send(request)
        return response if options is None else await self.finish(response, options)

    async def finish(
        self, response: OperationsResponseT, options: WaitOptions
    ) -> OperationsResponseT:
        """Wait for the operations of ``response`` and, with ``connect``, for connections.

        Returns the response with the final records. If the wait fails, the error's ``result`` is
        the response.
        """
        deadline = Deadline(options.timeout)
        response = await self.waiter.finish(response, options.timeout, options.on_update)
        deadline.extend_if_missed()
        if options.connect:
            await self.connect(response, deadline)
        return response

    async def connect(self, response: OperationsResponse, deadline: Deadline) -> None:
        """Wait until the computes of ``response`` accept connections.

        If the wait fails, the error's ``result`` is ``response``.
        """
        try:
            await self.connector.connect(response, deadline)
        except NeonError as error:
            error.result = response
            error.maybe_delivered = True
            if isinstance(error, WaitError):
                error.settled = response.operations
            raise


class Resource:
    """The base class of resources. A method sends one request, unless stated otherwise."""

    def __init__(self, runner: CallRunner) -> None:
        self._runner = runner

    def _send(
        self,
        method: str,
        template: str,
        response_type: type[ResponseT],
        *ids: str | int,
        query: Mapping[str, QueryValue] | None = None,
        body: object = UNSET,
    ) -> Coroutine[None, None, ResponseT]:
        """Send a :func:`request`."""
        return self._runner.send(
            request(method, template, response_type, *ids, query=query, body=body)
        )

    def _start(
        self,
        method: str,
        template: str,
        response_type: type[OperationsResponseT],
        *ids: str | int,
        query: Mapping[str, QueryValue] | None = None,
        body: object = UNSET,
        wait: Wait,
        no_compute: str = "",
    ) -> Coroutine[None, None, OperationsResponseT]:
        """Send a :func:`request` that starts operations. With ``wait``, wait for them."""
        return self._runner.start(
            request(method, template, response_type, *ids, query=query, body=body),
            wait=wait,
            no_compute=no_compute,
        )

    def _paginate(
        self,
        first: Request[PageT],
        records: Callable[[PageT], list[RecordT]],
        key: Callable[[RecordT], Hashable],
        unavailable: Callable[[PageT], Sequence[str]] = lambda _page: (),
        is_truncated: Callable[[PageT], bool] = lambda _page: False,
    ) -> Paginator[RecordT]:
        """List the records of all pages. ``key`` identifies a record, to skip duplicates.

        ``unavailable`` returns the ids of the projects that are missing from a page.
        ``is_truncated`` returns whether a page reports that there are more records.
        """

        async def fetch(cursor: str | None) -> Page[RecordT]:
            page = first
            if cursor is not None:
                page = msgspec.structs.replace(first, query=(*first.query, ("cursor", cursor)))
            response = await self._runner.send(page)
            return Page(
                records(response),
                response.pagination,
                unavailable(response),
                is_truncated(response),
            )

        return Paginator(fetch, key)
