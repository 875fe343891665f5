"""The memory that pooled clients may hold. Pure."""

from typing import Final

from neonctl_local.postgres.proxy.errors import ComputeRefusedError

_MIB: Final = 1 << 20
MAX_CLIENT: Final = 128 * _MIB
"""The bytes that one client may hold: messages that no server has taken, and statements."""
MAX_ALL: Final = 512 * _MIB
"""The bytes that all clients may hold together."""

_CODE: Final = "53200"


class Budget:
    """Counts what all clients hold."""

    def __init__(self) -> None:
        self.used: int = 0


class Share:
    """What one client holds."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._size = 0

    def update(self, size: int, announced: int = 0) -> None:
        """Take note of the bytes that the client holds now.

        ``announced`` is the length of a message that has arrived in part. It is not reserved. Raise
        ComputeRefusedError if the client has to go.
        """
        if max(size, announced) > MAX_CLIENT:
            raise ComputeRefusedError(
                f"a pooled connection may hold {MAX_CLIENT / _MIB:.0f} MiB of messages and prepared"
                " statements, and this one needs more: send less at once, close statements, or use"
                " the host without -pooler",
                _CODE,
            )
        used = self._budget.used + size - self._size
        if size > self._size and used > MAX_ALL:
            raise ComputeRefusedError(
                f"all pooled connections together may hold {MAX_ALL / _MIB:.0f} MiB of messages and"
                " prepared statements, and need more: try again later, or use the host without"
                " -pooler",
                _CODE,
            )
        self._budget.used, self._size = used, size

    def release(self) -> None:
        """Take note that the client holds nothing any more."""
        self.update(0)
