from collections.abc import Iterable

def setup_databases(
    verbosity: int,
    interactive: bool,
    *,
    aliases: Iterable[str] | None = ...,
    serialized_aliases: Iterable[str] | None = ...,
) -> object: ...
