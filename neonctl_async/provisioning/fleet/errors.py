"""The error for tenants that cannot be provisioned as described."""

from collections.abc import Sequence
from typing import Final

MAX_SHOWN: Final = 5
"""The maximum number of problems in an error message."""


class FleetError(ValueError):
    """The description of a fleet contains problems. Raised before anything is created.

    ``problems`` contains a sentence for each problem. The message shows the first five. In a
    report, this is the error of a tenant whose parent failed.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        more = len(problems) - MAX_SHOWN
        rest = [f"and {more} more"] if more > 0 else []
        super().__init__("; ".join([*problems[:MAX_SHOWN], *rest]))
        self.problems: tuple[str, ...] = tuple(problems)

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.problems,))
