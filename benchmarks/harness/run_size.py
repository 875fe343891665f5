"""How much a run may take."""

from enum import Enum


class Effort(Enum):
    """A run whose figures are kept, or a quick look."""

    THOROUGH = "thorough"
    QUICK = "quick"

    def of(self, *, thorough: int, quick: int) -> int:
        """How often, by how much the run may take."""
        return thorough if self is Effort.THOROUGH else quick
