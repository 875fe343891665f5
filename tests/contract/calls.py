"""Calls of methods, with the requests and responses that they caused."""

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, NamedTuple, TypeVar
from unittest.mock import patch

from neonctl_async import NeonClient, NeonError, RateBudget, RetryPolicy
from neonctl_async.transport.download import Download
from neonctl_async.transport.protocol import Request
from neonctl_async.transport.retry import ProjectLock
from neonctl_async.transport.session import Session
from tests.contract.recorder import Exchange, Recorder
from tests.support.arguments import every_argument
from tests.support.methods import METHODS, Method
from tests.support.records import API_KEY

T = TypeVar("T")


class Call(NamedTuple):
    """A call of a method. The response is decoded to ``response_type``."""

    method: Method
    arguments: Mapping[str, object]
    exchange: Exchange
    response_type: Any


class RecordedClient:
    """A client whose exchanges are recorded. It sends each request once."""

    def __init__(self, neon: NeonClient, recorder: Recorder) -> None:
        self.neon = neon
        self.recorder = recorder

    async def call(self, method: Method, arguments: Mapping[str, object]) -> Call:
        """Call a method. An error response raises nothing: it is part of the exchange."""
        self.recorder.exchanges.clear()
        with _response_types() as types:
            try:
                await method.call(self.neon, arguments)
            except NeonError:
                assert self.recorder.exchanges, f"{method} sent no request"
        [exchange] = self.recorder.exchanges
        return Call(method, arguments, exchange, types[0])


@asynccontextmanager
async def recorded_client(server: str, prefer: str = "") -> AsyncGenerator[RecordedClient]:
    """Yield a client of a server. ``prefer`` selects the responses of Prism."""
    async with (
        Recorder(server, prefer) as recorder,
        NeonClient(
            API_KEY,
            base_url=recorder.base_url,
            budget=RateBudget.unlimited(),
            retry=RetryPolicy(attempts=1),
        ) as neon,
    ):
        yield RecordedClient(neon, recorder)


async def call_every_method(prism: str) -> dict[Method, Call | Exception]:
    """Call each method with every parameter. Return its call, or the error of the method."""
    calls: dict[Method, Call | Exception] = {}
    async with recorded_client(prism) as client:
        for method in METHODS:
            try:
                calls[method] = await client.call(method, every_argument(method))
            except Exception as error:  # noqa: BLE001 - only the tests of this method fail
                calls[method] = error
    return calls


@contextmanager
def _response_types() -> Generator[list[Any]]:
    """Yield the list of response types of the requests; a client does not expose them."""
    types: list[Any] = []
    send, download = Session.send, Session.download

    async def recording_send(
        session: Session, request: Request[T], lock: Callable[[], ProjectLock] | None = None
    ) -> T:
        types.append(request.response_type)
        return await send(session, request, lock)

    def recording_download(
        session: Session, request: Request[Download]
    ) -> AbstractAsyncContextManager[Download]:
        types.append(request.response_type)
        return download(session, request)

    with (
        patch.object(Session, "send", recording_send),
        patch.object(Session, "download", recording_download),
    ):
        yield types
