"""Waits until computes accept connections: repeated probes up to a deadline."""

import asyncio
import logging
import random
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Final, NamedTuple

import anyio

from neonctl_async.clock import loop_time
from neonctl_async.config import PollPolicy
from neonctl_async.connections.addresses import Address
from neonctl_async.connections.probe import NotReadyError, Probe
from neonctl_async.errors import ClientClosedError, NeonError, NotConnectableError
from neonctl_async.hooks import WaitEnded, WaitStarted
from neonctl_async.transport.calls import Deadline
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.waiting.timing.schedule import growing_delay

MAX_CONCURRENT_PROBES: Final = 64
"""The maximum number of connection attempts that one client makes at a time."""
LOOKUP_THREADS: Final = 16
"""The maximum number of host names that one client looks up at a time."""

_logger = logging.getLogger(__name__)


class Target(NamedTuple):
    """A compute to connect to."""

    endpoint_id: str
    address: Address


class _Attempts:
    """The attempts to connect to one compute."""

    def __init__(self, target: Target) -> None:
        self.target: Final = target
        self.is_connectable = False
        self._probe = Probe(target.address)
        self._failure: NotReadyError | None = None

    async def run(
        self,
        policy: PollPolicy,
        deadline: Deadline,
        limit: asyncio.Semaphore,
        lookups: Executor | None,
    ) -> None:
        """Connect until the compute accepts a connection or refuses all later ones.

        If the deadline is extended, make one more attempt.
        """
        started = loop_time()
        while True:
            is_last = deadline.is_extended
            self._probe = Probe(self.target.address, lookups)
            try:
                async with limit:
                    await self._probe.run()
            except NotReadyError as failure:
                self._failure = failure
                _logger.debug("compute %s is not connectable: %s", self.target.endpoint_id, failure)
                if failure.is_final or is_last:
                    return
            else:
                self.is_connectable = True
                return
            elapsed = loop_time() - started
            await deadline.sleep(growing_delay(policy, elapsed, random.random()))  # noqa: S311 - spreads the load, protects no secret

    @property
    def failure(self) -> NotReadyError:
        """The failure of the last attempt, or how far the first attempt got."""
        return self._failure or NotReadyError(self._probe.stage, self._probe.pending)


class ConnectionWaits:
    """Runs all waits for connections of one client."""

    def __init__(self, policy: PollPolicy, dispatcher: HookDispatcher) -> None:
        self._policy = policy
        self._dispatcher = dispatcher
        self._limit = asyncio.Semaphore(MAX_CONCURRENT_PROBES)
        # Not the threads of the loop: lookups that hang would stop all other work in threads.
        self._lookups = ThreadPoolExecutor(LOOKUP_THREADS, "neonctl-async lookup")
        self._running: set[anyio.CancelScope] = set()
        self._is_closed = False

    async def wait(self, targets: Sequence[Target], deadline: Deadline) -> None:
        """Wait until all computes accept connections.

        Raises NotConnectableError at the deadline, or as soon as a compute turns out never to
        accept connections.
        """
        if not targets:
            return
        started = loop_time()
        names = ", ".join(target.endpoint_id for target in targets)
        verb = "accepts" if len(targets) == 1 else "accept"
        wait = WaitStarted(operations=(), timeout=deadline.left, goal=f"{names} {verb} connections")
        self._dispatcher.wait_started(wait)
        failure: NeonError | None = None
        try:
            await self._run([_Attempts(target) for target in targets], deadline)
        except NeonError as error:
            failure = error
            raise
        finally:
            seconds = loop_time() - started
            ended = WaitEnded(wait=wait, unsuccessful=0, pending=0, error=failure, seconds=seconds)
            self._dispatcher.wait_ended(ended)

    async def _run(self, computes: Sequence[_Attempts], deadline: Deadline) -> None:
        if self._is_closed:
            raise _closed()
        failed: list[_Attempts] = []

        async def run(attempts: _Attempts) -> None:
            await attempts.run(self._policy, deadline, self._limit, self._lookups)
            if not attempts.is_connectable and attempts.failure.is_final:
                failed.append(attempts)
                scope.cancel()

        with deadline.scope() as scope:
            self._running.add(scope)
            try:
                async with anyio.create_task_group() as probes:
                    for attempts in computes:
                        probes.start_soon(run, attempts)
            finally:
                self._running.discard(scope)
        if self._is_closed:
            raise _closed()
        if unready := failed or [one for one in computes if not one.is_connectable]:
            raise _error(unready, deadline)

    def close(self) -> None:
        """End all waits with ClientClosedError."""
        self._is_closed = True
        for scope in self._running:
            scope.cancel()
        self._lookups.shutdown(wait=False, cancel_futures=True)


def _error(unready: Sequence[_Attempts], deadline: Deadline) -> NotConnectableError:
    first, failure = unready[0].target, unready[0].failure
    others = dict.fromkeys(one.target.endpoint_id for one in unready)
    return NotConnectableError(
        endpoint_id=first.endpoint_id,
        host=first.address.host,
        stage=failure.stage,
        reason=str(failure),
        is_final=failure.is_final,
        timeout=deadline.timeout or 0.0,
        others=[other for other in others if other != first.endpoint_id],
    )


def _closed() -> ClientClosedError:
    return ClientClosedError("the client was closed")
