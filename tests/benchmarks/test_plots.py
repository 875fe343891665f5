"""The plots of benchmark results."""

from benchmarks.harness.results import LATENESS, NEON_SDK, OURS, REQUESTS, make_row
from benchmarks.plots import comparison, waits


def test_waits_have_their_own_plot() -> None:
    lateness = make_row("a wait", LATENESS, "s", {OURS: [1.0], NEON_SDK: [2.0]})
    requests = make_row("a wait", REQUESTS, "count", {OURS: [1.0], NEON_SDK: [2.0]})
    assert "a wait" in waits.draw([lateness, requests])
    assert "a wait" not in comparison.draw([lateness, requests])
