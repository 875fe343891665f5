"""The size of a run."""

from enum import Enum


class RunSize(Enum):
    """A full run, whose results are kept, or a quick one."""

    FULL = "full"
    QUICK = "quick"

    def pick(self, *, full: int, quick: int) -> int:
        """Return the number for this size."""
        return full if self is RunSize.FULL else quick
