"""The deadline of a call that waits in more than one step."""

import math
from typing import NamedTuple

from neonctl_async.transport.calls import running_loop


class Deadline(NamedTuple):
    """The deadline of a call, shared by its waits for operations and for connections."""

    timeout: float | None
    """The timeout of the call, in seconds; None for no limit."""
    at: float
    """The time on the clock of the loop."""

    @classmethod
    def after(cls, timeout: float | None) -> "Deadline":
        """Return a deadline ``timeout`` seconds from now."""
        return cls(timeout, math.inf if timeout is None else running_loop().time() + timeout)

    @property
    def left(self) -> float | None:
        """The seconds until the deadline, at least 0; None for no limit."""
        return None if self.timeout is None else max(self.at - running_loop().time(), 0.0)
