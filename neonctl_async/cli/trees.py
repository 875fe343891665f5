"""Branches as a tree. Pure: no I/O."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from neonctl_async.cli.styles import ELLIPSIS
from neonctl_async.models.branches import Branch

_WIDEST: Final = 8
"""The maximum width, in columns, of the lines before a name, so that the name stays readable."""


def as_tree(branches: Sequence[Branch]) -> Iterator[tuple[Branch, str]]:
    """Yield the branches, each below its parent, with the lines that connect them.

    A branch whose parent is not in the list starts a tree of its own.
    """
    ids = {branch.id for branch in branches}
    children: defaultdict[str | None, list[Branch]] = defaultdict(list)
    for branch in branches:
        children[branch.parent_id if branch.parent_id in ids else None].append(branch)
    waiting = [(root, "", "") for root in reversed(children[None])]
    while waiting:  # no recursion: a branch may have a thousand ancestors
        branch, lines, below = waiting.pop()
        yield branch, lines if len(lines) <= _WIDEST else ELLIPSIS + lines[1 - _WIDEST :]
        for position, child in enumerate(reversed(children[branch.id])):
            ends = position == 0
            waiting.append(
                (child, below + ("└ " if ends else "├ "), below + ("  " if ends else "│ "))
            )
