"""Calls of methods, as the witness saw them."""

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple, TypeVar
from unittest.mock import patch

from neonctl_async import NeonClient, NeonError, RateBudget, RetryPolicy
from neonctl_async.transport.protocol import Request
from neonctl_async.transport.retry import ProjectLock
from neonctl_async.transport.session import Session
from tests.contract.witness import Exchange, Witness
from tests.support.arguments import every_argument
from tests.support.methods import METHODS, Method
from tests.support.records import API_KEY

T = TypeVar("T")


class Call(NamedTuple):
    """A call of a method: what was given and sent, and the type that its answer is decoded to."""

    method: Method
    arguments: Mapping[str, object]
    exchange: Exchange
    answer: Any


class Watched:
    """A client whose requests go to Prism past a witness; each is sent once, and at once."""

    def __init__(self, neon: NeonClient, witness: Witness) -> None:
        self.neon = neon
        self.witness = witness

    async def observe(self, method: Method, arguments: Mapping[str, object]) -> Call:
        """Call a method, whatever is answered: what there is to say is in the exchange."""
        self.witness.seen.clear()
        with _answers_read() as answers:
            try:
                await method.call(self.neon, arguments)
            except NeonError:
                assert self.witness.seen, f"{method} sent nothing"
        [exchange] = self.witness.seen
        return Call(method, arguments, exchange, answers[0])


@asynccontextmanager
async def watched(prism: str, prefer: str = "") -> AsyncGenerator[Watched]:
    """A watched client. ``prefer`` tells Prism which answers to give."""
    async with (
        Witness(prism, prefer) as witness,
        NeonClient(
            API_KEY,
            base_url=witness.base_url,
            budget=RateBudget.unlimited(),
            retry=RetryPolicy(attempts=1),
        ) as neon,
    ):
        yield Watched(neon, witness)


async def call_every_method(prism: str) -> dict[Method, Call | Exception]:
    """Each method called with every parameter; an error of its own in place of its call."""
    calls: dict[Method, Call | Exception] = {}
    async with watched(prism) as client:
        for method in METHODS:
            try:
                calls[method] = await client.observe(method, every_argument(method))
            except Exception as error:  # noqa: BLE001 - it is the test of this method that fails
                calls[method] = error
    return calls


@contextmanager
def _answers_read() -> Generator[list[Any]]:
    """The types that answers are decoded to: that of a request is not to be had from outside."""
    answers: list[Any] = []
    send = Session.send

    async def spying(
        session: Session, request: Request[T], lock: Callable[[], ProjectLock] | None = None
    ) -> T:
        answers.append(request.response_type)
        return await send(session, request, lock)

    with patch.object(Session, "send", spying):
        yield answers
