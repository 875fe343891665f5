"""Samples of locks become the locks of a report."""

from neonctl_async.cli.rehearsal.locks import HeldLock, LockTally, LockWait, SeenLock

ORDERS, NEW = 16_400, 16_500
NAMES = {ORDERS: "public.orders"}


SEEN = SeenLock(101, "3/1", "relation", ORDERS, "AccessExclusiveLock", granted=True)


def tally(*samples: list[SeenLock]) -> LockTally:
    """A sample each second, which takes 0.1 s."""
    result = LockTally()
    for number, seen in enumerate(samples):
        result.note(seen, sent=float(number), received=number + 0.1)
    result.finish()
    return result


def test_time_of_a_lock_is_never_more_than_that_between_its_samples() -> None:
    [held] = tally([], [SEEN], [SEEN], [SEEN], []).held(NAMES)
    assert held == HeldLock(
        relation="public.orders",
        mode="ACCESS EXCLUSIVE",
        blocks="reads and writes",
        transactions=1,
        longest_seconds=1.9,
    )
    [once] = tally([SEEN]).held(NAMES)
    assert once.longest_seconds == 0


def test_transactions_are_counted_and_the_longest_is_shown() -> None:
    [held] = tally([SEEN, SEEN._replace(pid=102)], [SEEN], [SEEN._replace(transaction="3/2")]).held(
        NAMES
    )
    assert (held.transactions, held.longest_seconds) == (3, 0.9)


def test_most_disruptive_locks_are_first() -> None:
    modes = ["ShareUpdateExclusiveLock", "ShareLock", "AccessExclusiveLock"]
    held = tally([SEEN._replace(mode=mode) for mode in modes]).held(NAMES)
    assert [one.blocks for one in held] == [
        "reads and writes",
        "writes",
        "schema changes and VACUUM",
    ]


def test_locks_on_other_relations_and_those_of_ordinary_queries_are_left_out() -> None:
    assert (
        tally([SEEN._replace(relation=NEW), SEEN._replace(mode="RowExclusiveLock")]).held(NAMES)
        == []
    )


def test_waits_are_no_held_locks() -> None:
    waiting = SEEN._replace(mode="AccessShareLock", granted=False)
    row = waiting._replace(mode="ShareLock", type="transactionid", relation=None)
    seen = tally([waiting, row], [waiting], [])
    assert seen.held(NAMES) == []
    assert seen.waits(NAMES) == [
        LockWait(waited_for="public.orders", mode="ACCESS SHARE", waits=1, longest_seconds=0.9),
        LockWait(waited_for="transactionid", mode="SHARE", waits=1, longest_seconds=0),
    ]


def test_longest_gap_includes_the_time_of_a_sample() -> None:
    seen = tally([], [])
    seen.note([], sent=5, received=9)
    assert (seen.samples, seen.longest_gap) == (3, 8)
    assert tally([]).longest_gap == 0.1
