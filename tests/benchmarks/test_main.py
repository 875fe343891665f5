"""The command line of the benchmarks."""

import sys

import pytest

from benchmarks import __main__ as program
from benchmarks.harness.results import OURS, Row, Target, make_row
from benchmarks.harness.run_size import RunSize


@pytest.mark.parametrize(("limit", "code"), [(1.0, 0), (0.9, 1)])
def test_exit_status_is_1_if_a_target_is_missed(
    limit: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario(size: RunSize) -> list[Row]:
        assert size is RunSize.QUICK
        return [make_row("GET", "alone", "ms", {OURS: [1.0]}, targets=[Target(limit)])]

    group = program.CLIENT._replace(scenarios={"get": scenario})
    monkeypatch.setattr(program, "GROUPS", {"client": group})
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--quick"])
    assert program.main() == code
    assert ("MISSED: GET, alone" in capsys.readouterr().out) is bool(code)


def test_program_that_a_report_needs_is_missed_before_the_measurements() -> None:
    def versions() -> dict[str, str]:
        raise RuntimeError("nginx is not installed")

    def scenario(_: RunSize) -> list[Row]:
        pytest.fail("a report that cannot be written was measured")

    group = program.CLIENT._replace(scenarios={"get": scenario}, versions=versions)
    with pytest.raises(RuntimeError, match="nginx"):
        program.run_group(group, ["get"], RunSize.FULL, always_write=False)
