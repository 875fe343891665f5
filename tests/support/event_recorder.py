"""Hooks that record every event."""

from typing import Any

from neonctl_async import Hooks


class EventRecorder:
    """Records every event of a client, oldest first."""

    def __init__(self) -> None:
        self.events: list[object] = []
        self.hooks = Hooks(**dict.fromkeys(Hooks.__struct_fields__, self.events.append))

    def of(self, *kinds: type[object]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kinds)]
