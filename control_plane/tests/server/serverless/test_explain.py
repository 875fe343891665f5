"""Options of EXPLAIN that plain Postgres does not know."""

import pytest

from neonctl_local.server.serverless.explain import without_neon_options


@pytest.mark.parametrize(
    ("sent", "changed"),
    [
        (
            "EXPLAIN (ANALYZE, VERBOSE, FILECACHE, FORMAT JSON) SELECT filecache",
            "EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON)            SELECT filecache",
        ),
        (
            "explain(prefetch off,costs,filecache on) TABLE t",
            "explain(costs)".ljust(40) + " TABLE t",
        ),
        (
            "\n EXPLAIN\t(FILECACHE, PREFETCH) TABLE t",
            "\n EXPLAIN\t(COSTS)".ljust(31) + " TABLE t",
        ),
        ("EXPLAIN (PREFETCH) ANALYZE TABLE t", "EXPLAIN (COSTS)    ANALYZE TABLE t"),
        ("EXPLAIN (PREFETCH)(ANALYZE) TABLE t", "EXPLAIN (COSTS)   (ANALYZE) TABLE t"),
    ],
)
def test_options_of_neon_are_dropped_and_the_statement_keeps_its_place(
    sent: str, changed: str
) -> None:
    assert without_neon_options(sent) == changed
    assert len(changed) == len(sent)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'EXPLAIN (FILECACHE)'",
        "EXPLAIN SELECT filecache FROM t",
        "EXPLAIN (ANALYZE) SELECT (filecache) FROM t",
        "EXPLAIN (SELECT a, filecache FROM t)",
        "EXPLAIN (TABLE filecache)",
        "EXPLAIN (VALUES (1, filecache))",
        "EXPLAIN (filecache, unknown) TABLE t",
        "EXPLAIN (filecache on off) TABLE t",
        "EXPLAIN (filecache 'on') TABLE t",
        "EXPLAIN (filecache,) TABLE t",
        "EXPLAIN (costs /*, filecache*/) TABLE t",
        "EXPLAIN (costs, filecache TABLE t",
        "EXPLAINER (filecache) TABLE t",
        "",
    ],
)
def test_all_other_statements_stay_as_they_are(sql: str) -> None:
    assert without_neon_options(sql) == sql
