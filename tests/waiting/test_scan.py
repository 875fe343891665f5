"""Scans of model projects. The tests of the poller cover their effect on requests."""

import math
from collections.abc import Collection, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async.models.base import Pagination
from neonctl_async.models.operations import OperationsPage
from neonctl_async.waiting.scan import (
    FRUITLESS_SCANS,
    MAX_PAGE,
    MAX_ROUND,
    MIN_SCANNED,
    SCAN_INTERVAL,
    SCAN_MARGIN,
    PageScan,
    ReadQueue,
    ScanPlan,
    reads_per_poll,
)
from neonctl_async.waiting.tracked import OperationWait, TrackedOperation
from tests.support.records import operation, ref


def run(scan: PageScan, listed: Sequence[str]) -> list[int]:
    """Read the pages of a scan from a project with these operations. Return the page sizes."""
    sizes: list[int] = []
    while size := scan.next_page_size():
        start = sum(sizes)
        end = start + size
        cursor = str(end) if end < len(listed) else None
        records = [operation(id) for id in listed[start:end]]
        scan.add_page(OperationsPage(operations=records, pagination=Pagination(cursor=cursor)))
        sizes.append(size)
    return sizes


def poll(plan: ScanPlan, ids: Collection[str], listed: Sequence[str]) -> tuple[list[int], set[str]]:
    """Return the page sizes of one poll, and the missing operations."""
    scan = plan.start(ids)
    if scan is None:
        return [], set(ids)
    sizes = run(scan, listed)
    plan.finish(scan, are_all=True)
    return sizes, set(scan.missing)


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{number}" for number in range(count)]


projects = st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40)).map(
    lambda counts: [names(*part) for part in zip(("new", "listed", "hidden"), counts, strict=True)]
)


@given(st.data(), projects)
def test_scan_finds_the_operations_of_its_pages_and_misses_the_others(
    data: st.DataObject, project: list[list[str]]
) -> None:
    others, tracked, hidden = project
    listed = data.draw(st.permutations([*others, *tracked]))
    scan = PageScan([*tracked, *hidden], data.draw(st.integers(1, 100)))
    depth = sum(run(scan, listed))
    read = listed[:depth]
    assert set(scan.missing) == {*hidden, *(id for id in tracked if id not in read)}
    assert scan.depth == len(read)
    positions = [listed.index(id) + 1 for id in tracked if id in read]
    assert scan.found_depth == max(positions, default=0)


@given(st.data(), projects)
def test_listed_operations_are_found_by_scans_after_a_few_polls(
    data: st.DataObject, project: list[list[str]]
) -> None:
    others, tracked, hidden = project
    if not tracked or len(tracked) + len(hidden) < MIN_SCANNED:
        return
    listed = data.draw(st.permutations([*others, *tracked]))
    plan, missing = ScanPlan(), set[str]()
    for _ in range(2):
        _, missing = poll(plan, [*tracked, *hidden], listed)
    assert missing == set(hidden)


@given(st.integers(2, 1000), st.integers(0, 5_000))
def test_unlisted_operations_cost_few_pages(missing: int, history: int) -> None:
    ids, listed = names("hidden", missing), names("history", history)
    plan = ScanPlan()
    pages = [len(poll(plan, ids, listed)[0]) for _ in range(40)]
    assert sum(pages) <= 2 * reads_per_poll(missing) + 40 * math.ceil((missing + 10) / MAX_PAGE)
    assert 0 in pages[-SCAN_INTERVAL:]
    assert any(pages[-SCAN_INTERVAL:])


def test_polls_skip_the_scan_after_scans_without_any_result() -> None:
    plan, ids = ScanPlan(), names("hidden", 5)
    scans = [bool(poll(plan, ids, [])[0]) for _ in range(FRUITLESS_SCANS + 2 * SCAN_INTERVAL)]
    assert scans == [True] * FRUITLESS_SCANS + 2 * [False, False, False, True]


def test_new_operation_is_scanned_for_at_once() -> None:
    plan, ids = ScanPlan(), names("hidden", 5)
    for _ in range(FRUITLESS_SCANS):
        poll(plan, ids, [])
    assert poll(plan, [*ids, "new"], ["new"]) == ([6 + SCAN_MARGIN], set(ids))
    assert poll(plan, ids, [])[0] != []


def test_empty_page_ends_a_scan() -> None:
    scan = PageScan(["a"], planned_depth=50)
    scan.add_page(OperationsPage(operations=[], pagination=Pagination(cursor="more")))
    assert scan.next_page_size() == 0


@given(st.integers(0, 100_000))
def test_each_missing_operation_is_read_within_a_round(missing: int) -> None:
    reads = reads_per_poll(missing)
    assert 0 <= reads <= missing
    assert reads * MAX_ROUND >= missing
    assert reads <= max(3, missing / MAX_ROUND + 1)


def tracked(count: int, deadline: float = math.inf) -> list[TrackedOperation]:
    wait = OperationWait([], timeout=deadline)
    wait.start(0.0, reports_each=False)
    entries = [TrackedOperation(ref(id), 0.0) for id in names("op", count)]
    for entry in entries:
        entry.waits[wait] = None
    return entries


@given(st.integers(1, 100), st.lists(st.integers(0, 8), max_size=60))
def test_no_missing_operation_waits_for_more_than_a_round(count: int, arrivals: list[int]) -> None:
    entries = tracked(count)
    waited = dict.fromkeys(entries, 0)
    for now, new in enumerate([*arrivals, *[0] * MAX_ROUND], 1):
        for entry in ReadQueue(entries, now, margin=0.05).first:
            entry.read_at = now
            waited[entry] = -1
        waited = {entry: polls + 1 for entry, polls in waited.items()}
        assert max(waited.values()) <= MAX_ROUND
        for arrived in tracked(new):
            arrived.read_at = now
            entries.append(arrived)
            waited[arrived] = 0


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 5))
def test_each_missing_operation_is_in_the_queue_exactly_once(
    urgent: int, others: int, count: int
) -> None:
    entries = [*tracked(others), *tracked(urgent, deadline=5.0)]
    queue = ReadQueue(entries, now=4.0, margin=1.0)
    assert set(queue.first) | set(queue.later) == set(entries)
    assert len(queue.first) + len(queue.later) == len(entries)
    assert set(entries[others:]) <= set(queue.first)
    taken: list[TrackedOperation] = []
    while following := list(queue.take(count, lambda _entry: True)):
        assert len(following) <= count
        taken += following
    assert taken == queue.later


def test_operations_that_need_no_read_are_left_out() -> None:
    queue = ReadQueue(tracked(10), now=0.0, margin=0.05)
    dropped, read, polled, *others = queue.later
    read.read_at = 1.0
    polled.poll = object()
    assert list(queue.take(10, lambda entry: entry is not dropped)) == others


def test_operations_of_a_wait_are_read_shortly_before_its_deadline() -> None:
    entries = tracked(50, deadline=10.0)
    firsts = [len(ReadQueue(entries, now, margin=2.0).first) for now in (7.9, 8.0, 9.0)]
    assert firsts == [5, 50, 50]


def test_urgent_reads_count_toward_the_reads_of_a_poll() -> None:
    for urgent, others, expected in ((2, 38, 4), (10, 30, 10)):
        entries = [*tracked(others), *tracked(urgent, deadline=5.0)]
        assert len(ReadQueue(entries, now=4.5, margin=1.0).first) == expected


def test_scan_for_history_is_at_least_as_deep_as_requested() -> None:
    plan = ScanPlan()
    for tracked, depth in ((1, 50), (39, 50), (45, 45 + SCAN_MARGIN)):
        scan = plan.start(names("op", tracked), least_depth=50)
        assert scan is not None
        assert list(scan.missing) == names("op", tracked)
        assert scan.next_page_size() == depth
    assert plan.start(["op"]) is None


def test_page_sizes_add_up_to_the_planned_depth() -> None:
    ids, listed = names("old", 5), [*names("new", 5000), *names("old", 5)]
    assert run(PageScan(ids, planned_depth=2500), listed) == [1000, 1000, 500]


@pytest.mark.parametrize(("missing", "pages"), [(99, 0), (100, 1), (199, 1), (200, 2), (350, 3)])
def test_many_missing_operations_are_worth_more_pages(missing: int, pages: int) -> None:
    listed = names("history", 10_000)
    sizes = run(PageScan(names("hidden", missing), planned_depth=500), listed)
    assert sizes == [500, *[MAX_PAGE] * pages]


def test_depth_of_scans_grows_until_a_page_beyond_the_oldest_found_operation() -> None:
    plan = ScanPlan()
    listed = ["first", *names("history", 10_000)]
    depths = [sum(poll(plan, ["first", "hidden"], listed)[0]) for _ in range(6)]
    # The first operation is at the position 1, so a scan is not planned beyond 1001.
    assert depths == [12, 96, 768, 1001, 12, 12]


def test_scans_follow_the_position_of_the_oldest_found_operation() -> None:
    plan = ScanPlan()
    ids = ["a", "b"]
    listed = ["a", *names("new", 60), "b", *names("history", 1000)]
    depths = [sum(poll(plan, ids, listed)[0]) for _ in range(3)]
    assert depths == [12, 96, 62 + SCAN_MARGIN]


def test_operation_that_is_found_restarts_the_count_of_fruitless_scans() -> None:
    plan = ScanPlan()
    ids = names("hidden", 2)
    poll(plan, ids, [])
    poll(plan, ids, ids[:1])
    scans = [bool(poll(plan, ids, [])[0]) for _ in range(FRUITLESS_SCANS + 1)]
    assert scans == [True] * FRUITLESS_SCANS + [False]


def test_scan_that_was_too_short_does_not_count_as_fruitless() -> None:
    plan, ids, others = ScanPlan(), names("hidden", 5), names("other", 500)
    depths = [sum(poll(plan, ids, others)[0]) for _ in range(6)]
    deepest = depths.index(max(depths))
    assert deepest > 0
    assert depths.index(0) == deepest + FRUITLESS_SCANS
