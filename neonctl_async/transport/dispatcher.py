"""Telling the hooks of a client what happens."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from neonctl_async.hooks import Hooks

EventT = TypeVar("EventT")

_logger = logging.getLogger(__name__)


class HookDispatcher:
    """All the hooks of a client. Telling them breaks no call."""

    def __init__(self, hooks: Sequence[Hooks]) -> None:
        self.hear_of_requests: Final = any(
            hook is not None for one in hooks for hook in (one.on_request, one.on_response)
        )
        self.request: Final = _notifier("on_request", [one.on_request for one in hooks])
        self.response: Final = _notifier("on_response", [one.on_response for one in hooks])
        self.retry: Final = _notifier("on_retry", [one.on_retry for one in hooks])
        self.status: Final = _notifier("on_status", [one.on_status for one in hooks])
        self.wait_started: Final = _notifier(
            "on_wait_started", [one.on_wait_started for one in hooks]
        )
        self.wait_ended: Final = _notifier("on_wait_ended", [one.on_wait_ended for one in hooks])


def _notifier(
    name: str, hooks: Sequence[Callable[[EventT], object] | None]
) -> Callable[[EventT], None]:
    """A function that calls each of ``hooks`` with an event."""
    listening = [hook for hook in hooks if hook is not None]

    def notify(event: EventT) -> None:
        for hook in listening:
            try:
                hook(event)
            except (Exception, asyncio.CancelledError):
                _logger.exception("a hook for %s failed", name)

    return notify
