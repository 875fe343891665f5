"""Which copy a recovery starts from, and which copies are made and removed."""

from datetime import UTC, datetime, timedelta

import pytest

from neonctl_local.postgres.history.bases import (
    GRACE,
    INTERVAL,
    Base,
    Moment,
    find_base,
    is_due,
    outdated,
    oversized,
    position,
)

START = datetime(2026, 1, 1, tzinfo=UTC)


def base(number: int, *, first: bool = False, size: int = 10) -> Base:
    """Return a copy that was made ``number`` hours after the start, at the LSN ``number/0``."""
    return Base(
        number=number,
        taken_at=hours(number),
        lsn=f"{number:X}/0",
        segment=f"00000001{number:08X}00000000",
        size=size,
        first=first,
    )


def hours(number: float) -> datetime:
    return START + timedelta(hours=number)


BASES = [base(1, first=True), base(2), base(10)]


@pytest.mark.parametrize(
    ("moment", "number", "target"),
    [
        (Moment(hours(0)), 1, "recovery_target"),
        (Moment(hours(1)), 1, "recovery_target_time"),
        (Moment(hours(9.5)), 2, "recovery_target_time"),
        (Moment(hours(11)), 10, "recovery_target_time"),
        (Moment(lsn="9/FF"), 2, "recovery_target_lsn"),
        (Moment(lsn="A/0"), 10, "recovery_target_lsn"),
    ],
)
def test_newest_copy_before_the_moment_is_used(moment: Moment, number: int, target: str) -> None:
    found = find_base(BASES, moment)
    assert found is not None
    assert found[0].number == number
    assert target in found[1]


@pytest.mark.parametrize("moment", [Moment(hours(1.9)), Moment(lsn="1/FF")])
def test_moment_before_all_copies_is_not_found(moment: Moment) -> None:
    assert find_base(BASES[1:], moment) is None


def test_lsns_are_compared_as_numbers() -> None:
    assert position("10/0") > position("9/FFFFFFFF")


def test_copy_is_due_when_the_wal_has_grown() -> None:
    assert is_due([], 0)
    assert not is_due([base(1)], INTERVAL - 1)
    assert is_due([base(1)], INTERVAL)
    assert not is_due([base(1, size=2 * INTERVAL)], 2 * INTERVAL - 1)


def test_copies_that_the_retention_does_not_need_are_outdated() -> None:
    now = hours(12) + timedelta(seconds=GRACE)
    assert outdated(BASES, now, 24 * 3600) == []
    assert outdated(BASES, now, 11 * 3600) == []
    assert outdated(BASES, now, 9 * 3600) == BASES[:1]
    assert outdated(BASES, now, 0) == BASES[:2]


def test_oldest_copies_are_dropped_until_the_rest_fits() -> None:
    usage = {"br-1": [(base(1), 5), (base(3), 5)], "br-2": [(base(2), 5), (base(4), 5)]}
    assert oversized(usage, 20) == {}
    assert oversized(usage, 19) == {"br-1": [base(1)]}
    assert oversized(usage, 0) == {"br-1": [base(1)], "br-2": [base(2)]}


def test_only_copy_of_a_cluster_stays_even_if_a_sibling_drops_an_equal_copy() -> None:
    first = base(1, first=True)  # branches of a stopped parent begin with equal copies
    usage = {"br-1": [(first, 5), (base(2), 5)], "br-2": [(first, 5)]}
    assert oversized(usage, 0) == {"br-1": [first]}
