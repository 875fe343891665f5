"""The libraries that the servers of a branch preload."""

from collections.abc import Sequence
from typing import Final

import msgspec

from neonctl_local.postgres.settings import LIBRARIES
from neonctl_local.storage.transactions import Transaction

DEFAULTS: Final = frozenset({"pg_stat_statements"})
"""The libraries that ``use_defaults`` adds."""


class PreloadLibraries(msgspec.Struct, frozen=True):
    """The ``preload_libraries`` setting. Older data files can contain any library names."""

    use_defaults: bool = False
    enabled_libraries: list[str] = []

    def names(self, available: Sequence[str]) -> list[str]:
        """Return the available libraries that the setting loads."""
        wanted = {*self.enabled_libraries, *(DEFAULTS if self.use_defaults else ())}
        return [name for name in available if name in wanted]


def available(tx: Transaction, pg_version: int) -> list[str]:
    """Return the libraries that can be preloaded: with real databases, the installed ones."""
    rules = tx.rules.postgres
    if rules is None:
        return list(LIBRARIES)
    return [name for name in LIBRARIES if name in rules.libraries.get(pg_version, ())]
