"""The memory that pooled clients may hold. Pure: no I/O."""

from collections.abc import Callable
from typing import Final

from neonctl_local.postgres.proxy.errors import ComputeRefusedError

_MIB: Final = 1 << 20
MAX_CLIENT: Final = 128 * _MIB
"""How many bytes one client may hold: unsent messages to a server, and prepared statements."""
MAX_ALL: Final = 512 * _MIB
"""How many bytes all clients may hold together."""

_CODE: Final = "53200"


class Budget:
    """Counts the bytes that all pooled clients hold."""

    def __init__(self) -> None:
        self.used: int = 0
        self.shares: Final[set[Share]] = set()
        """The shares of the clients that hold any bytes."""


class Share:
    """The bytes that one pooled client holds.

    ``on_lost`` is called when the client must be disconnected, because it holds more than any other
    client while others need memory.
    """

    def __init__(self, budget: Budget, on_lost: Callable[[ComputeRefusedError], None]) -> None:
        self._budget = budget
        self._on_lost = on_lost
        self.size: int = 0
        """The number of bytes that the client holds."""
        self._is_lost = False

    def update(self, size: int, announced: int = 0) -> None:
        """Record how many bytes the client now holds.

        ``announced`` is the length of a message that has only arrived in part. It is checked, but
        not recorded. Raise ComputeRefusedError if the client must be disconnected.
        """
        if self._is_lost or (size == self.size and not announced):
            return
        if max(size, announced) > MAX_CLIENT:
            raise ComputeRefusedError(
                f"a pooled connection may hold {MAX_CLIENT / _MIB:.0f} MiB of messages and prepared"
                " statements, and this one needs more: send less at once, close statements, or use"
                " the host without -pooler",
                _CODE,
            )
        is_more = size > self.size
        self._set(size)
        while is_more and self._budget.used > MAX_ALL:
            greatest = max(self._budget.shares, key=lambda share: share.size)
            error = ComputeRefusedError(
                f"all pooled connections together may hold {MAX_ALL / _MIB:.0f} MiB of messages and"
                " prepared statements, and need more, of which this one holds most: try again"
                " later, or use the host without -pooler",
                _CODE,
            )
            if greatest is self:
                raise error
            greatest.lose(error)

    def lose(self, error: ComputeRefusedError) -> None:
        """Release what the client holds, and report that the client must be disconnected."""
        self.release()
        self._is_lost = True
        self._on_lost(error)

    def release(self) -> None:
        """Record that the client no longer holds anything."""
        self._set(0)

    def _set(self, size: int) -> None:
        self._budget.used += size - self.size
        self.size = size
        if size:
            self._budget.shares.add(self)
        else:
            self._budget.shares.discard(self)
