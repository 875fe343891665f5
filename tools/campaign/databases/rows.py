"""The rows that each branch must have, and those that it may have.

A row is a number that is written once. It must exist in a branch when the database has acknowledged
it there. Until then, and after a lost connection, it may exist.
"""

from collections.abc import Collection, Iterable, Sequence


class Contents:
    """One possible content of a branch: ``required`` rows, and ``possible`` ones."""

    def __init__(self, required: Iterable[int] = (), possible: Iterable[int] = ()) -> None:
        self.required = set(required)
        self.possible = set(possible) | self.required

    def allows(self, rows: Collection[int]) -> bool:
        """Return whether a branch with this content may have these rows, and no others."""
        return self.required <= set(rows) <= self.possible


class BranchLedger:
    """The content of a branch. After an interrupted restore there are two possible contents."""

    def __init__(self, name: str, contents: Contents) -> None:
        self.name = name
        self.id = ""
        self.endpoint_id = ""
        self.uris: Sequence[str] = ()
        """The URI of direct connections, and that of the pooler."""
        self.parent: BranchLedger | None = None
        self.contents = [contents]

    def attempt(self, row: int) -> None:
        """Record that a row is being written."""
        for contents in self.contents:
            contents.possible.add(row)

    def acknowledge(self, row: int) -> None:
        """Record that a row was written."""
        for contents in self.contents:
            contents.required.add(row)

    def copy(self) -> Contents:
        """Return the content of a copy that is made from now on.

        Call ``extend`` with it when the copy is finished.
        """
        required = set[int].intersection(*(contents.required for contents in self.contents))
        return Contents(required, self._possible())

    def extend(self, copy: Contents) -> None:
        """Add the rows that were written while the copy was made."""
        copy.possible |= self._possible()

    def restore(self, source: "BranchLedger", copy: Contents, *, is_certain: bool) -> None:
        """Record a restore from ``source``, which had at least the content of ``copy``.

        Unless it is certain, the old content is possible too: the operation that copies may have
        failed, or another one after it.
        """
        source.extend(copy)
        self.contents = [copy] if is_certain else [*self.contents, copy]

    def check(self, rows: Collection[int]) -> str | None:
        """Compare the branch with these rows, which it has. Return the difference, if any."""
        matching = [contents for contents in self.contents if contents.allows(rows)]
        if matching:
            # The rows that exist are committed, and no other is being written.
            self.contents = [Contents(rows)]
            return None
        missing = set[int].union(*(contents.required - set(rows) for contents in self.contents))
        return (
            f"branch {self.name}, {self.id}: {len(rows)} rows, expected {len(self.contents)} "
            f"possible contents; missing {sorted(missing)[:10]}, "
            f"unexpected {sorted(set(rows) - self._possible())[:10]}"
        )

    def _possible(self) -> set[int]:
        return set[int].union(*(contents.possible for contents in self.contents))
