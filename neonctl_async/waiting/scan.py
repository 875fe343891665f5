"""The pages and the single operations that a poll reads, without I/O.

A scan reads the newest operations of a project, page by page. Operations that are
missing from a list are read by id, a few in each poll.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from msgspec import UNSET, UnsetType

from neonctl_async.models.operations import Operation, OperationsPage
from neonctl_async.waiting.tracked import TrackedOperation

MAX_PAGE = 1000
"""The largest page size that the API accepts."""
MIN_SCANNED = 2
"""The smallest number of operations for which a poll reads a list."""
SCAN_MARGIN = 10
"""The number of operations that a scan reads beyond the tracked ones, to allow for operations of
other clients."""
MISSING_PER_EXTRA_PAGE = 100
"""The number of missing operations that justify reading one more page than planned."""
DEPTH_GROWTH = 8
"""The factor by which each scan is deeper than the previous one, while operations are missing."""
FRUITLESS_SCANS = 2
"""After this many complete scans that find no tracked operation, most polls stop scanning."""
SCAN_INTERVAL = 4
"""While scans find no tracked operation, one in this many polls scans."""
READS_PER_PAGE = 3
"""The number of reads by id in each poll that justify scanning one more page."""
MIN_READS = READS_PER_PAGE
"""The smallest number of missing operations that a poll reads by id, if that many are missing."""
MAX_ROUND = 10
"""The maximum number of polls until each missing operation has been read by id."""


class PageScan:
    """The scan of one poll, which divides the poll's operations into found and missing ones."""

    def __init__(self, ids: Iterable[str], planned_depth: int) -> None:
        self.missing: dict[str, None] = dict.fromkeys(ids)
        """The ids of the operations that no page has contained so far."""
        self.planned_depth: int = planned_depth
        self.depth: int = 0
        """The number of operations read so far."""
        self.found_depth: int = 0
        """The position of the oldest operation found so far, or 0 if none was found."""
        self.cursor: str | UnsetType | None = UNSET
        """The cursor of the next page: UNSET for the first page, None after the last page."""

    def next_page_size(self) -> int:
        """Return the size of the next page, or 0 if no further page is read."""
        if not self.missing or self.cursor is None:
            return 0
        if self.depth < self.planned_depth:
            return min(self.planned_depth - self.depth, MAX_PAGE)
        extra = len(self.missing) // MISSING_PER_EXTRA_PAGE * MAX_PAGE
        return MAX_PAGE if self.depth < self.planned_depth + extra else 0

    def add_page(self, page: OperationsPage) -> list[Operation]:
        """Return the records of missing operations on a page, in the order in which they finished.

        They are no longer missing. Of two records of one operation, the first is used.
        """
        found: list[Operation] = []
        for position, record in enumerate(page.operations, self.depth + 1):
            if record.id in self.missing:
                del self.missing[record.id]
                found.append(record)
                self.found_depth = position
        self.depth += len(page.operations)
        has_more = bool(page.operations) and page.pagination is not None
        self.cursor = page.pagination.next_cursor if has_more and page.pagination else None
        return sorted(found, key=lambda record: record.updated_at)


class ScanPlan:
    """The scans of one project: whether a poll scans, and how deep.

    Scans get deeper while they miss operations, up to a limit. At the limit, the missing operations
    count as unlisted: they are read by id, and no longer affect the depth. If scans find no tracked
    operation at all, most polls do not scan.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._unlisted: set[str] = set()
        self._fruitless = 0
        self._skipped = 0

    def start(self, ids: Collection[str], least_depth: int = 0) -> PageScan | None:
        """Return the scan for a poll of these operations, or None if they are only read by id.

        The scan reads at least ``least_depth`` operations, to learn their durations.
        """
        if least_depth:
            return PageScan(ids, max(least_depth, len(ids) + SCAN_MARGIN))
        if len(ids) < MIN_SCANNED:
            return None
        is_hopeless = self._fruitless >= FRUITLESS_SCANS and self._unlisted.issuperset(ids)
        if is_hopeless and self._skipped < SCAN_INTERVAL - 1:
            self._skipped += 1
            return None
        self._skipped = 0
        self._depth = max(self._depth, len(ids) + SCAN_MARGIN)
        return PageScan(ids, self._depth)

    def finish(self, scan: PageScan, *, are_all: bool) -> None:
        """Choose the depth of the next scan.

        ``are_all`` is True if the scan was for all tracked operations of the project.
        """
        missing = set(scan.missing)
        pages = max(reads_per_poll(len(missing)) // READS_PER_PAGE, 1)
        limit = scan.found_depth + pages * MAX_PAGE
        is_complete = scan.cursor is None or scan.planned_depth >= limit
        if is_complete or missing <= self._unlisted:
            self._unlisted = missing
            self._fruitless = 0 if scan.found_depth else self._fruitless + 1
            if are_all:
                self._depth = scan.found_depth + SCAN_MARGIN
        else:
            self._fruitless = 0
            self._depth = max(self._depth, min(DEPTH_GROWTH * scan.planned_depth, limit))


def reads_per_poll(missing: int) -> int:
    """Return how many of the missing operations a poll reads by id."""
    return min(missing, max(MIN_READS, math.ceil(missing / MAX_ROUND)))


class ReadQueue:
    """The missing operations of one poll, in the order in which they are read by id.

    The operations that were read least recently come first. In the last ``margin`` seconds before a
    wait's deadline, and after the deadline was moved, every poll reads all missing operations of
    the wait.
    """

    def __init__(self, missing: Sequence[TrackedOperation], now: float, margin: float) -> None:
        urgent: list[TrackedOperation] = []
        others: list[TrackedOperation] = []
        for entry in missing:
            is_urgent = any(
                wait.is_extended or wait.deadline - margin <= now for wait in entry.waits
            )
            (urgent if is_urgent else others).append(entry)
        others.sort(key=lambda entry: entry.read_at)
        count = max(reads_per_poll(len(missing)) - len(urgent), 0)
        self.first: list[TrackedOperation] = [*urgent, *others[:count]]
        """The operations that the poll reads in any case."""
        self.later: list[TrackedOperation] = others[count:]
        """The other operations. Each one is read by this poll or by a later one."""
        self._read_at = {entry: entry.read_at for entry in self.later}
        self._next = iter(self.later)

    def take(
        self, count: int, is_tracked: Callable[[TrackedOperation], bool]
    ) -> Iterator[TrackedOperation]:
        """Yield the next operations, up to ``count``.

        Operations are left out if they are no longer tracked, or if another poll is reading them or
        has read them since.
        """
        for entry in self._next:
            is_read = entry.poll is not None or entry.read_at > self._read_at[entry]
            if is_tracked(entry) and not is_read:
                yield entry
                count -= 1
            if count == 0:
                return
