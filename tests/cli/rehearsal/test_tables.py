"""Two readings of a database become the changes of its tables."""

from msgspec.structs import replace

from neonctl_async.cli.rehearsal.tables import Relation, TableChange, table_changes

UNCHANGED = TableChange(table="public.orders", change="", inserted=0, updated=0, deleted=0)
ORDERS = Relation("public.orders", "r", file=1, inserted=10, updated=5, deleted=1)


def test_table_that_did_not_change_is_left_out() -> None:
    assert table_changes({1: ORDERS}, {1: ORDERS}) == []


def test_rows_are_the_growth_of_the_counters() -> None:
    after = ORDERS._replace(inserted=13, updated=6, deleted=1)
    assert table_changes({1: ORDERS}, {1: after}) == [replace(UNCHANGED, inserted=3, updated=1)]


def test_counters_that_were_reset_start_at_0() -> None:
    after = ORDERS._replace(inserted=2, updated=5, deleted=1)
    assert table_changes({1: ORDERS}, {1: after}) == [replace(UNCHANGED, inserted=2)]


def test_table_in_a_new_file_is_rewritten() -> None:
    assert table_changes({1: ORDERS}, {1: ORDERS._replace(file=2)}) == [
        replace(UNCHANGED, change="rewritten")
    ]


def test_created_and_dropped_tables() -> None:
    created = Relation("public.bills", "r", file=3, inserted=4)
    assert table_changes({1: ORDERS}, {2: created}) == [
        replace(UNCHANGED, table="public.bills", change="created", inserted=4),
        replace(UNCHANGED, change="dropped", inserted=None, updated=None, deleted=None),
    ]


def test_indexes_and_sequences_are_no_tables() -> None:
    relations = {kind: Relation(kind, kind, file=1) for kind in "iSv"}
    before = dict(enumerate(relations.values()))
    assert table_changes(before, {}) == []
    assert table_changes({}, before) == []
