"""The options of EXPLAIN that only Neon's Postgres has."""

import re
from typing import Final

_OPTIONS: Final = re.compile(r"\s*EXPLAIN\s*(\(([\w\s,]{0,500})\))", re.ASCII | re.IGNORECASE)
_OF_NEON: Final = {"filecache", "prefetch"}
_OF_POSTGRES: Final = set(
    "analyze buffers costs format generic_plan memory serialize settings summary timing verbose"
    " wal".split()
)

_DEFAULT: Final = "COSTS"
"""The option that is written if the list would otherwise be empty.

Without a list, Postgres could read the next word of the statement as an option.
"""


def without_neon_options(sql: str) -> str:
    """Return a statement without ``FILECACHE`` and ``PREFETCH``, which Neon's MCP server sends.

    Nothing else changes, not even the position of the explained statement, because errors report
    positions. A statement that does not start with a plain list of known options stays as it is.
    """
    match = _OPTIONS.match(sql)
    options = [] if match is None else [option.split() for option in match[2].split(",")]
    names = [words[0].lower() if 0 < len(words) < 3 else "" for words in options]
    if match is None or _OF_NEON.isdisjoint(names) or not set(names) <= _OF_NEON | _OF_POSTGRES:
        return sql
    pairs = zip(names, match[2].split(","), strict=True)
    kept = ",".join(option for name, option in pairs if name not in _OF_NEON)
    changed = f"({kept or _DEFAULT})"
    start, end = match.span(1)
    return f"{sql[:start]}{changed:<{end - start}}{sql[end:]}"
