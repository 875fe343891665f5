"""The branches of a project as a tree, read page by page because there can be many."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

import msgspec

from neonctl_local.clock import Instant, in_seconds
from neonctl_local.console.states import branch_state, compute_state
from neonctl_local.engine import computes, timelines
from neonctl_local.storage.rows import Row
from neonctl_local.storage.tables import Branch, Endpoint
from neonctl_local.storage.transactions import Transaction

PAGE_SIZE: Final = 50
"""The largest number of branches on a page."""


class BranchName(Row, frozen=True):
    """The columns of a branch that its place in the tree depends on."""

    table: ClassVar[str] = "branches"

    id: str
    parent_id: str | None
    name: str
    is_default: bool


class Place(msgspec.Struct, frozen=True):
    """A branch in the tree. The level of a root is 0."""

    branch: BranchName
    level: int


class Compute(msgspec.Struct, frozen=True):
    """A compute of a branch, with the label of its state."""

    id: str
    type: str
    label: str


class TreeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A branch as a row of the tree, with the label of its state."""

    id: str
    name: str
    level: int
    parent_id: str | None
    parent_name: str | None
    is_default: bool
    protected: bool
    label: str
    logical_size: int | None
    created_at: str
    expires_at: str | None
    computes: list[Compute]


class TreePage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the tree. Its first row is row ``first`` of ``total``, counted from 1."""

    rows: list[TreeRow]
    number: int
    first: int
    total: int

    @property
    def last(self) -> int:
        """The number of the page's last row."""
        return self.first + len(self.rows) - 1

    @property
    def has_next(self) -> bool:
        """True if there are rows after this page."""
        return self.last < self.total


def read_names(tx: Transaction, project_id: str) -> list[BranchName]:
    """Return all branches of a project, newest first."""
    where = "WHERE project_id = ? AND deleted_at IS NULL ORDER BY created_at DESC, rowid DESC"
    return tx.select(BranchName, where, project_id)


def arrange(branches: Sequence[BranchName]) -> list[Place]:
    """Return the branches in the order of the tree: each branch, then all its descendants.

    The tree with the default branch comes first.
    """
    known = {branch.id: branch for branch in branches}
    children: dict[str | None, list[BranchName]] = defaultdict(list)
    for branch in branches:
        children[branch.parent_id if branch.parent_id in known else None].append(branch)
    first = _root_of_default(branches, known)
    roots = sorted(children[None], key=lambda root: root.id != first)
    places: list[Place] = []
    waiting = [Place(root, 0) for root in reversed(roots)]
    while waiting:
        place = waiting.pop()
        places.append(place)
        below = children.get(place.branch.id, [])
        waiting += [Place(child, place.level + 1) for child in reversed(below)]
    return places


def read_page(
    tx: Transaction,
    names: Sequence[BranchName],
    *,
    search: str = "",
    number: int = 1,
    size: int = PAGE_SIZE,
) -> TreePage:
    """Return a page of the tree, or with ``search``, a page of the branches that match.

    A branch matches if its name contains ``search`` or its id equals ``search``. A number beyond
    the last page means the last page.
    """
    places = arrange(names)
    if search:
        wanted = search.casefold()
        places = [
            Place(place.branch, 0)
            for place in places
            if wanted in place.branch.name.casefold() or wanted == place.branch.id
        ]
    pages = max(1, -(-len(places) // size))
    number = min(max(number, 1), pages)
    start = (number - 1) * size
    shown = places[start : start + size]
    parents = {branch.id: branch.name for branch in names}
    return TreePage(
        rows=_rows(tx, shown, parents), number=number, first=start + 1, total=len(places)
    )


def _root_of_default(branches: Iterable[BranchName], known: dict[str, BranchName]) -> str | None:
    place = next((branch for branch in branches if branch.is_default), None)
    while place is not None and place.parent_id in known:
        place = known[place.parent_id]
    return None if place is None else place.id


def _rows(tx: Transaction, places: Sequence[Place], parents: dict[str, str]) -> list[TreeRow]:
    shown = [place.branch.id for place in places]
    marks = ", ".join("?" * len(shown))
    branches = {row.id: row for row in tx.select(Branch, f"WHERE id IN ({marks})", *shown)}
    found: dict[str, list[Compute]] = defaultdict(list)
    # A read_write compute comes first: "read_write" sorts after "read_only".
    where = f"WHERE branch_id IN ({marks}) AND deleted_at IS NULL ORDER BY type DESC, created_at"
    for endpoint in tx.select(Endpoint, where, *shown):
        found[endpoint.branch_id].append(_compute(endpoint, tx.now))
    return [
        _row(tx, place.level, branches[place.branch.id], parents, found[place.branch.id])
        for place in places
    ]


def _row(
    tx: Transaction, level: int, branch: Branch, parents: dict[str, str], found: list[Compute]
) -> TreeRow:
    changing = tx.now < branch.state_at and branch.state != branch.state_before
    return TreeRow(
        id=branch.id,
        name=branch.name,
        level=level,
        parent_id=branch.parent_id,
        parent_name=parents.get(branch.parent_id or ""),
        is_default=branch.is_default,
        protected=branch.protected,
        label=branch_state(timelines.state(branch, tx.now), branch.state if changing else None),
        logical_size=branch.logical_size if tx.rules.postgres else None,
        created_at=in_seconds(branch.created_at),
        expires_at=None if branch.expires_at is None else in_seconds(branch.expires_at),
        computes=found,
    )


def _compute(endpoint: Endpoint, now: Instant) -> Compute:
    pending = endpoint.state if now < endpoint.state_at else None
    return Compute(
        id=endpoint.id,
        type=endpoint.type,
        label=compute_state(computes.state(endpoint, now), pending),
    )
