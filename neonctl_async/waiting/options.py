"""The ``wait=`` parameter of calls that start operations."""

from typing import Literal, TypeAlias

import msgspec

from neonctl_async._internal import shorten
from neonctl_async.waiting.waiter import (
    DEFAULT_TIMEOUT,
    OnUpdate,
    check_on_update,
    check_timeout,
)


class WaitOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a ``wait=`` parameter: ``wait=WaitOptions(timeout=60.0, connect=True)``.

    Raises TypeError or ValueError for an invalid option.
    """

    timeout: float | None = DEFAULT_TIMEOUT
    """How long to wait, in seconds, for the operations and the connections together. None for no
    limit."""
    connect: bool = False
    """True to wait until the computes accept connections once the operations have succeeded."""
    on_update: OnUpdate | None = None
    """A plain function that is called with the first record of each operation, and with every later
    change of it."""

    def __post_init__(self) -> None:
        check_timeout(self.timeout)
        check_on_update(self.on_update)
        if not isinstance(self.connect, bool):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
            raise TypeError(f"connect is {shorten(self.connect)}: expected True or False")


Wait: TypeAlias = bool | float | Literal["connect"] | WaitOptions
"""The type of ``wait=``: ``True`` for the default options, a number of seconds for another timeout,
``"connect"`` for ``WaitOptions(connect=True)``. ``False`` does not wait."""


def wait_options(wait: Wait) -> WaitOptions | None:
    """Return the options of a ``wait=`` argument, None for False.

    Raises TypeError or ValueError for an invalid argument.
    """
    if isinstance(wait, WaitOptions):
        return wait
    if isinstance(wait, bool):
        return WaitOptions() if wait else None
    if isinstance(wait, int | float):
        check_timeout(wait, "wait")
        return WaitOptions(timeout=wait)
    if wait == "connect":  # pyright: ignore[reportUnnecessaryComparison] - callers without a type checker
        return WaitOptions(connect=True)
    raise TypeError(
        f"wait is {shorten(wait)}: expected True, False, a number of seconds, 'connect' or "
        "WaitOptions(...)"
    )
