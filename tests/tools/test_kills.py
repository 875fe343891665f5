"""The ledger of rows, and a short campaign that kills processes; ``make kills`` runs a long one."""

import asyncio
import re

import pytest

from tests.support.campaigns import run_campaign
from tests.support.postgres import skip_without_postgres
from tools.kills.ledger import BranchLedger, Contents

KILLS = 7


def ledger(*contents: Contents) -> BranchLedger:
    branch = BranchLedger("test", contents[0])
    branch.contents = list(contents)
    return branch


def test_acknowledged_row_must_exist() -> None:
    branch = ledger(Contents([1, 2]))
    branch.attempt(3)
    branch.acknowledge(3)
    assert "missing [3]" in str(branch.check([1, 2]))
    assert branch.check([1, 2, 3]) is None


def test_row_that_was_not_acknowledged_may_exist() -> None:
    for rows in ([1], [1, 2]):
        branch = ledger(Contents([1]))
        branch.attempt(2)
        assert branch.check(rows) is None


def test_foreign_row_is_a_difference() -> None:
    assert "unexpected [7]" in str(ledger(Contents([1])).check([1, 7]))


def test_row_that_was_seen_must_exist_from_then_on() -> None:
    branch = ledger(Contents([1], [2]))
    assert branch.check([1, 2]) is None
    assert "missing [2]" in str(branch.check([1]))


@pytest.mark.parametrize("rows", [[1, 2], [5]])
def test_interrupted_restore_leaves_the_old_content_or_the_new_one(rows: list[int]) -> None:
    branch = ledger(Contents([1, 2]), Contents([5]))
    assert branch.check(rows) is None
    assert [contents.required for contents in branch.contents] == [set(rows)]


def test_mixture_of_both_contents_of_a_restore_is_a_difference() -> None:
    assert ledger(Contents([1, 2]), Contents([5])).check([1, 5])


def test_copy_may_have_the_rows_that_were_written_meanwhile() -> None:
    source = ledger(Contents([1]))
    copy = source.copy()
    source.attempt(2)
    source.acknowledge(2)
    assert not copy.allows([1, 2])
    source.extend(copy)
    assert copy.allows([1])
    assert copy.allows([1, 2])
    assert not copy.allows([2])


@pytest.mark.parametrize(("is_certain", "old"), [(True, False), (False, True)])
def test_restore_may_have_the_rows_that_were_written_meanwhile(is_certain: bool, old: bool) -> None:
    branch, source = ledger(Contents([1])), ledger(Contents([5]))
    copy = source.copy()
    source.attempt(6)
    branch.restore(source, copy, is_certain=is_certain)
    for rows, expected in (([5], True), ([5, 6], True), ([1], old), ([1, 6], False)):
        assert (ledger(*branch.contents).check(rows) is None) == expected


@pytest.mark.scale
@pytest.mark.postgres
@pytest.mark.timeout(400)  # it takes 15 seconds, and minutes on a very busy machine
@pytest.mark.parametrize(("mode", "killed"), [([], "control plane"), (["--recycled"], "guardian")])
async def test_killed_processes_lose_nothing_and_leave_nothing_behind(
    mode: list[str], killed: str
) -> None:
    await asyncio.to_thread(skip_without_postgres)
    output = await run_campaign("kills", "--seeds", "7", "--kills", str(KILLS), *mode)
    assert re.search(f"(?m)^killed: .*{killed}", output)
