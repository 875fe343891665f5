"""What the resources share: sending, paging, and waiting for what a request started."""

from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Literal, Protocol, TypeAlias, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Pagination
from neonctl_async.models.operations import OperationsResponse
from neonctl_async.pagination import Page, Paginator
from neonctl_async.transport.protocol import Request, check_aware
from neonctl_async.transport.session import Session
from neonctl_async.waiting.locks import ProjectLocks
from neonctl_async.waiting.waiter import DEFAULT_TIMEOUT, Waiter, check_timeout


class _PageAnswer(Protocol):
    @property
    def pagination(self) -> Pagination | None: ...


ResponseT = TypeVar("ResponseT")
RecordT = TypeVar("RecordT")
T = TypeVar("T")
MomentT = TypeVar("MomentT", bound=datetime | UnsetType | None)
PageT = TypeVar("PageT", bound=_PageAnswer)
OperationsResponseT = TypeVar("OperationsResponseT", bound=OperationsResponse)

SortOrder: TypeAlias = Literal["asc", "desc"]


def drop_unset(**fields: object) -> dict[str, object]:
    """The fields of a body, without those that are left out.

    Raises ValueError, naming the field, for a datetime without a time zone.
    """
    return {name: _plain(name, value) for name, value in fields.items() if value is not UNSET}


def whole_seconds(moment: MomentT) -> MomentT:
    """``moment`` without what is below a second, which the platform does not take everywhere."""
    return moment.replace(microsecond=0) if isinstance(moment, datetime) else moment


def _plain(name: str, value: object) -> object:
    match value:
        case datetime():
            return check_aware(name, value)
        case Mapping():
            return dict(cast("Mapping[str, object]", value))
        case _:
            return value


def as_list(name: str, values: Sequence[T] | UnsetType) -> list[T] | UnsetType:
    """The values of a parameter that takes several.

    Raises TypeError for a string, which is a sequence of its characters.
    """
    if isinstance(values, UnsetType):
        return UNSET
    if isinstance(values, str | bytes):
        raise TypeError(f"{name} is {values!r}: expected a list")
    return list(values)


def check_within(name: str, value: int | UnsetType, least: int, most: int) -> None:
    """Raise ValueError or TypeError unless ``value`` is left out or from ``least`` to ``most``."""
    if isinstance(value, UnsetType):
        return
    if isinstance(value, bool) or not isinstance(value, int):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
        raise TypeError(f"{name} is {value!r}: expected an int from {least} to {most}")
    if not least <= value <= most:
        raise ValueError(f"{name} is {value}: expected {least} to {most}")


class Requester:
    """How every method of the API is called: sent, waited for, paged."""

    def __init__(self, session: Session, waiter: Waiter, locks: ProjectLocks) -> None:
        self.waiter = waiter
        self._session = session
        self._locks = locks

    def send(self, request: Request[ResponseT]) -> Coroutine[None, None, ResponseT]:
        """Send a request; a project that is locked (423) is watched until it is not."""
        project_id = None if request.method == "GET" else request.project_id
        lock = None if project_id is None else partial(self._locks.of, project_id)
        return self._session.send(request, lock)

    async def start(
        self, request: Request[OperationsResponseT], *, wait: bool | float
    ) -> OperationsResponseT:
        """Send what starts work; with ``wait`` come back when the work is done."""
        if wait is False:
            return await self.send(request)
        if not isinstance(wait, int | float):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
            raise TypeError(f"wait is {wait!r}: expected True, False or a number of seconds")
        timeout = DEFAULT_TIMEOUT if wait is True else wait
        check_timeout(timeout, "wait")
        return await self.waiter.finish(await self.send(request), timeout)

    def paginate(
        self,
        first: Request[PageT],
        records: Callable[[PageT], list[RecordT]],
        key: Callable[[RecordT], Hashable],
    ) -> Paginator[RecordT]:
        """All records of a list endpoint from its ``first`` page on, told apart by ``key``."""

        async def fetch(cursor: str | None) -> Page[RecordT]:
            page = first
            if cursor is not None:
                page = msgspec.structs.replace(first, query=(*first.query, ("cursor", cursor)))
            response = await self.send(page)
            return Page(records(response), response.pagination)

        return Paginator(fetch, key)


class Resource:
    """One resource of the API; a method is one request, unless it says otherwise."""

    def __init__(self, requester: Requester) -> None:
        self._requester = requester
