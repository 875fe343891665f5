"""Delivery of events to the hooks of a client."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from neonctl_async.hooks import Hooks

EventT = TypeVar("EventT")

_logger = logging.getLogger(__name__)


class HookDispatcher:
    """All hooks of a client. An exception raised by a hook is logged, never propagated."""

    def __init__(self, hooks: Sequence[Hooks]) -> None:
        self.has_request_hooks: Final = any(
            hook is not None for group in hooks for hook in (group.on_request, group.on_response)
        )
        self.request: Final = _notifier("on_request", [group.on_request for group in hooks])
        self.response: Final = _notifier("on_response", [group.on_response for group in hooks])
        self.retry: Final = _notifier("on_retry", [group.on_retry for group in hooks])
        self.status: Final = _notifier("on_status", [group.on_status for group in hooks])
        self.wait_started: Final = _notifier(
            "on_wait_started", [group.on_wait_started for group in hooks]
        )
        self.wait_ended: Final = _notifier(
            "on_wait_ended", [group.on_wait_ended for group in hooks]
        )


def _notifier(
    name: str, hooks: Sequence[Callable[[EventT], object] | None]
) -> Callable[[EventT], None]:
    """Return a function that calls each of ``hooks`` with an event."""
    callables = [hook for hook in hooks if hook is not None]

    def notify(event: EventT) -> None:
        for hook in callables:
            try:
                hook(event)
            except (Exception, asyncio.CancelledError):
                _logger.exception("a hook for %s failed", name)

    return notify
